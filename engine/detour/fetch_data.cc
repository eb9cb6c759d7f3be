// FetchEmitter: data of variable length behind the fixed part.

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/detour/body_registers.h"
#include "engine/detour/fetch_emitter.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using lang::FetchOp;
using Xbyak::CodeGenerator;

void FetchEmitter::EmitStringArray(const FetchOp& op, Pass pass, Label& leave) {
  const Xbyak::Address base = a_.Slot(a_.frame().array_base());
  const Xbyak::Address index = a_.Slot(a_.frame().array_index());
  Label next;
  a_.lea(rax, ptr[kValue + op.offset]);
  a_.mov(base, rax);
  a_.mov(index, 0);
  a_.L(next);
  a_.mov(rcx, index);
  a_.mov(rax, base);
  a_.MayFault(leave);
  a_.mov(kValue, ptr[rax + rcx * 8]);
  if (pass == Pass::kMeasure) {
    strings_.Measure(0);
  } else {
    strings_.Copy(0, {.offset = op.slot, .in_array = true});
  }
  a_.inc(index);
  a_.cmp(index, op.count);
  a_.jb(next);
}

// rcx = the length asked for, within bounds.
void FetchEmitter::ClampLength() {
  a_.mov(rcx, a_.Slot(a_.frame().length()));
  a_.xor_(edx, edx);
  a_.test(rcx, rcx);
  a_.cmovs(rcx, rdx);
  a_.mov(edx, max_string_);
  a_.cmp(rcx, rdx);
  a_.cmova(rcx, rdx);
}

// All or nothing: one load in each page tells.
void FetchEmitter::MeasureBytes(const FetchOp& op, Label& leave) {
  Label page, readable;
  a_.lea(rsi, ptr[kValue + op.offset]);
  ClampLength();
  a_.test(rcx, rcx);
  a_.jz(readable);
  a_.lea(rdx, ptr[rsi + rcx - 1]);
  a_.L(page);
  a_.MayFault(leave);
  a_.movzx(eax, byte[rsi]);
  a_.or_(rsi, 4095);
  a_.inc(rsi);
  a_.cmp(rsi, rdx);
  a_.jbe(page);
  a_.L(readable);
  strings_.Count(rcx);
}

// Bytes that changed since they were measured, and no longer fit, are a fault.
void FetchEmitter::StoreBytes(const FetchOp& op) {
  Label fault, done;
  a_.lea(rsi, ptr[kValue + op.offset]);
  ClampLength();
  a_.mov(rdx, kCursor);
  a_.lea(rax, ptr[kCursor + rcx]);
  a_.cmp(rax, a_.Slot(a_.frame().limit()));
  a_.ja(fault);
  strings_.CopyBytes(fault);
  a_.xor_(ecx, ecx);
  a_.cmp(a_.Slot(a_.frame().length()), max_string_);
  a_.setg(cl);
  a_.shl(ecx, 31);
  strings_.StoreSlot({.offset = op.slot});
  a_.jmp(done);
  a_.L(fault);
  a_.mov(kCursor, rdx);
  a_.L(done);
}

// On uprobes the kernel reads the text as a user address, which always faults.
void FetchEmitter::StoreLiteral(const FetchOp& op, Label& leave) {
  if (probe_.limits.kernel_string_rules) return;
  const std::string& text = code_.literals[op.index];
  const auto size = static_cast<uint32_t>(text.size());
  a_.lea(rax, ptr[kCursor + size]);
  a_.cmp(rax, a_.Slot(a_.frame().limit()));
  a_.ja(leave, CodeGenerator::T_NEAR);
  a_.mov(rdx, kCursor);
  for (uint32_t done = 0; done < size; done += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + done, std::min<size_t>(8, size - done));
    a_.mov(rax, word);
    a_.mov(ptr[kCursor + done], rax);
  }
  a_.add(kCursor, size);
  a_.xor_(ecx, ecx);
  strings_.StoreSlot({.offset = op.slot});
}

}  // namespace probed::detour

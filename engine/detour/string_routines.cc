#include "engine/detour/string_routines.h"

#include <array>
#include <bit>
#include <cstdlib>

#include "engine/detour/body_registers.h"
#include "engine/detour/string_search.h"
#include "engine/lang/payload.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers

namespace {

constexpr size_t kMostBytes = 1024;
static_assert(lang::kFaultSlot == ~0u);

// rdx: where the string begins. rsi, rax = the aligned word there; bytes before it are no NULs.
// Whole aligned words are read, so no load touches a page that the string does not reach.
void LoadFirstWord(Assembler& a, Label& fault) {
  a.mov(rsi, rdx);
  a.and_(rsi, -8);
  a.MayFault(fault);
  a.mov(rax, ptr[rsi]);
  a.mov(ecx, edx);
  a.shl(ecx, 3);  // shifts take it modulo 64
  a.or_(r9, -1);
  a.shl(r9, cl);
  a.not_(r9);
  a.or_(rax, r9);
}

// edi, which is not yet kCursor, keeps the longest length meanwhile: the caller's rdi is on the
// stack.
void EmitMeasure(Assembler& a, bool kernel_rules) {
  Label next, found, too_long, fault;
  a.mov(edi, ecx);
  LoadHighBits(a);
  LoadFirstWord(a, fault);
  a.L(next);
  FindNul(a, found);
  a.add(rsi, 8);
  a.mov(rax, rsi);
  a.sub(rax, rdx);
  a.cmp(rax, rdi);
  a.ja(kernel_rules ? fault : too_long);
  a.MayFault(fault);
  a.mov(rax, ptr[rsi]);
  a.jmp(next);
  a.L(found);
  a.bsf(rcx, rcx);
  a.shr(ecx, 3);
  a.sub(rsi, rdx);
  a.add(rsi, rcx);
  a.cmp(rsi, rdi);
  a.ja(kernel_rules ? fault : too_long);
  a.add(kTotal, rsi);
  if (kernel_rules) {
    a.mov(rax, kOneString);
    a.add(kTotal, rax);
  }
  a.ret();
  if (!kernel_rules) {
    a.L(too_long);
    a.mov(esi, edi);
    a.bts(esi, std::countr_zero(lang::kTruncatedBit));
    a.add(kTotal, rdi);
    a.ret();
  }
  a.L(fault);
  a.or_(esi, -1);
  a.ret();
}

// The last of several words overlaps the one before, so as not to read behind the end.
void EmitCopy(Assembler& a) {
  Label words, brief, bytes, done, fault;
  a.lea(r9, ptr[kCursor + rcx]);
  a.sub(rcx, 8);
  a.jb(brief);
  a.L(words);
  a.MayFault(fault);
  a.mov(rax, ptr[rsi]);
  a.mov(ptr[kCursor], rax);
  a.add(rsi, 8);
  a.add(kCursor, 8);
  a.sub(rcx, 8);
  a.jae(words);
  a.MayFault(fault);
  a.mov(rax, ptr[rsi + rcx]);
  a.mov(ptr[kCursor + rcx], rax);
  a.jmp(done);
  a.L(brief);
  a.add(ecx, 8);
  a.jz(done);
  a.L(bytes);
  a.MayFault(fault);
  a.movzx(eax, byte[rsi]);
  a.mov(byte[kCursor], al);
  a.inc(rsi);
  a.inc(kCursor);
  a.dec(ecx);
  a.jnz(bytes);
  a.L(done);
  a.mov(kCursor, r9);
  a.clc();
  a.ret();
  a.L(fault);
  a.mov(kCursor, r9);
  a.stc();
  a.ret();
}

StringRoutines Assemble() {
  std::array<uint8_t, kMostBytes> buffer{};
  const Frame frame({});
  Assembler a(buffer, frame);
  StringRoutines routines;
  routines.measure = a.here();
  EmitMeasure(a, false);
  routines.measure_by_kernel_rules = a.here();
  EmitMeasure(a, true);
  routines.copy = a.here();
  EmitCopy(a);
  if (Xbyak::GetError() != 0) std::abort();  // the same code in every run
  routines.fix_ups = a.TakeFixUps();
  routines.code.assign(a.getCode(), a.getCode() + a.getSize());
  return routines;
}

}  // namespace

const StringRoutines& TheStringRoutines() {
  static const StringRoutines routines = Assemble();
  return routines;
}

}  // namespace probed::detour

#include "engine/detour/string_code.h"

#include <bit>

#include "engine/detour/body_registers.h"
#include "engine/detour/string_routines.h"
#include "engine/detour/string_search.h"
#include "engine/lang/payload.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using Xbyak::CodeGenerator;

void StringCode::LoadAddress(const Xbyak::Reg64& to, int32_t offset) {
  if (offset == 0) return a_.mov(to, kValue);
  a_.lea(to, ptr[kValue + offset]);
}

void StringCode::Call(uint32_t routine) {
  a_.mov(rax, routines_ + routine);
  a_.call(rax);
}

void StringCode::Measure(int32_t offset, std::optional<uint32_t> length_word) {
  const StringRoutines& routines = TheStringRoutines();
  LoadAddress(rdx, offset);
  a_.mov(ecx, max_string_);
  Call(kernel_rules_ ? routines.measure_by_kernel_rules : routines.measure);
  if (length_word) a_.mov(dword[rsp + *length_word], esi);
}

void StringCode::Count(const Xbyak::Reg64& length) {
  a_.add(kTotal, length);
  if (!kernel_rules_) return;
  a_.mov(rax, kOneString);
  a_.add(kTotal, rax);
}

// ecx = the length, without kTruncatedBit.
void StringCode::StoreMeasuredSlot(uint32_t length_word, MeasuredSlot slot) {
  const auto place = payload_ + slot.offset;
  a_.mov(ecx, dword[rsp + length_word]);
  if (slot.begin) {
    a_.mov(dword[kRecord + place], *slot.begin);
  } else {
    a_.mov(eax, edi);
    a_.sub(eax, kRecord.cvt32());
    a_.sub(eax, payload_);
    a_.mov(dword[kRecord + place], eax);
  }
  a_.mov(dword[kRecord + (place + 4)], ecx);
  if (!kernel_rules_) a_.btr(ecx, std::countr_zero(lang::kTruncatedBit));
}

// Its bytes may have changed meanwhile, but not its length.
void StringCode::CopyMeasured(int32_t offset, uint32_t length_word, MeasuredSlot slot,
                              Label& fault) {
  LoadAddress(rsi, offset);
  StoreMeasuredSlot(length_word, slot);
  CopyBytes(fault);
}

void StringCode::CopyBytes(Label& fault) {
  Call(TheStringRoutines().copy);
  a_.jc(fault, CodeGenerator::T_NEAR);
}

// Stores the part of the first aligned word that belongs to the string, then puts kCursor where the
// word's own beginning would have been copied to.
void StringCode::CopyFirstWord(Label& found, Label& fault) {
  a_.mov(ecx, esi);
  a_.shl(ecx, 3);
  a_.and_(rsi, -8);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(r9, rax);
  a_.shr(r9, cl);
  a_.mov(ptr[kCursor], r9);
  a_.or_(r9, -1);
  a_.shl(r9, cl);
  a_.not_(r9);
  a_.or_(rax, r9);
  a_.shr(ecx, 3);
  a_.and_(ecx, 7);
  a_.sub(kCursor, rcx);
  FindNul(a_, found);
}

// The memory may be another than when it was measured: no store leaves the record. A string that
// has grown too long for it is a fault, as is one that was, and that thus has no room.
void StringCode::Copy(int32_t offset, Slot slot) {
  Label next, found, too_long, fault, store, done;
  a_.lea(rsi, ptr[kValue + offset]);
  a_.mov(rdx, kCursor);
  a_.cmp(kCursor, a_.Slot(a_.frame().limit()));
  a_.ja(fault, CodeGenerator::T_NEAR);
  CopyFirstWord(found, fault);
  a_.L(next);
  a_.add(rsi, 8);
  a_.add(kCursor, 8);
  a_.mov(rax, kCursor);
  a_.sub(rax, rdx);
  a_.cmp(rax, max_string_);
  a_.ja(kernel_rules_ ? fault : too_long);
  a_.cmp(kCursor, a_.Slot(a_.frame().limit()));
  a_.ja(fault);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(ptr[kCursor], rax);
  FindNul(a_, found);
  a_.jmp(next);
  a_.L(found);
  a_.bsf(rcx, rcx);
  a_.shr(ecx, 3);
  a_.add(kCursor, rcx);
  a_.mov(rax, kCursor);
  a_.sub(rax, rdx);
  a_.xor_(ecx, ecx);
  a_.cmp(rax, max_string_);
  a_.jbe(store);
  if (!kernel_rules_) {
    a_.L(too_long);
    a_.lea(kCursor, ptr[rdx + max_string_]);
    a_.mov(ecx, lang::kTruncatedBit);
    a_.jmp(store);
  }
  a_.L(fault);
  a_.mov(kCursor, rdx);
  a_.jmp(done);
  a_.L(store);
  a_.cmp(kCursor, a_.Slot(a_.frame().limit()));
  a_.ja(fault);
  StoreSlot(slot);
  a_.L(done);
}

void StringCode::StoreSlot(Slot slot) {
  a_.mov(rax, kCursor);
  a_.sub(rax, rdx);
  a_.or_(eax, ecx);
  a_.shl(rax, 32);
  a_.sub(rdx, kRecord);
  a_.sub(edx, payload_);
  a_.or_(rax, rdx);
  const auto offset = payload_ + slot.offset;
  if (!slot.in_array) return a_.mov(ptr[kRecord + offset], rax);
  a_.mov(rsi, a_.Slot(a_.frame().array_index()));
  a_.mov(ptr[kRecord + rsi * 8 + offset], rax);
}

}  // namespace probed::detour

#include "engine/detour/string_code.h"

#include <memory>

#include "engine/detour/body_registers.h"
#include "engine/lang/payload.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using Xbyak::CodeGenerator;

constexpr uint64_t kOneString = uint64_t{1} << 32;  // in kTotal

void StringCode::LoadConstants() {
  a_.mov(kHighBits, 0x8080808080808080);
}

// rax: a word. Jumps with the lowest set bit of rcx in the byte of the first NUL, or falls through.
void StringCode::FindNul(Label& found) {
  a_.mov(rcx, -0x0101010101010101);
  a_.add(rcx, rax);
  a_.not_(rax);
  a_.and_(rcx, rax);
  a_.and_(rcx, kHighBits);
  a_.jnz(found);
}

// rdx: where the string begins. rsi, rax = the aligned word there; bytes before it are no NULs.
void StringCode::LoadFirstWord(Label& fault) {
  a_.mov(rsi, rdx);
  a_.and_(rsi, -8);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(ecx, edx);
  a_.shl(ecx, 3);  // shifts take it modulo 64
  a_.or_(r9, -1);
  a_.shl(r9, cl);
  a_.not_(r9);
  a_.or_(rax, r9);
}

void StringCode::LoadAddress(const Xbyak::Reg64& to, int32_t offset) {
  if (offset == 0) return a_.mov(to, kValue);
  a_.lea(to, ptr[kValue + offset]);
}

void StringCode::Measure(int32_t offset, std::optional<uint32_t> length_word) {
  Label next, found, too_long, done;
  LoadAddress(rdx, offset);
  LoadFirstWord(done);
  a_.L(next);
  FindNul(found);
  a_.add(rsi, 8);
  a_.mov(rax, rsi);
  a_.sub(rax, rdx);
  a_.cmp(rax, max_string_);
  a_.ja(too_long);
  a_.MayFault(done);
  a_.mov(rax, ptr[rsi]);
  a_.jmp(next);
  a_.L(found);
  a_.bsf(rcx, rcx);
  a_.shr(ecx, 3);
  a_.sub(rsi, rdx);
  a_.add(rsi, rcx);
  a_.cmp(rsi, max_string_);
  CountMeasured(length_word, too_long, done);
  a_.L(done);
}

// rsi: the length, compared with the longest that is stored.
void StringCode::CountMeasured(std::optional<uint32_t> length_word, Label& too_long, Label& fault) {
  const auto leave_word = [&](const auto& word) {
    if (length_word) a_.mov(dword[rsp + *length_word], word);
  };
  if (kernel_rules_) {
    a_.ja(fault);
    leave_word(esi);
    Count(rsi);
    a_.L(too_long);
    return;
  }
  Label add;
  leave_word(esi);
  a_.jbe(add);
  a_.L(too_long);
  leave_word(max_string_ | lang::kTruncatedBit);
  a_.mov(esi, max_string_);
  a_.L(add);
  Count(rsi);
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
  if (!kernel_rules_) a_.and_(ecx, ~lang::kTruncatedBit);
}

// Its bytes may have changed meanwhile, but not its length.
void StringCode::CopyMeasured(int32_t offset, uint32_t length_word, MeasuredSlot slot,
                              Label& fault) {
  LoadAddress(rsi, offset);
  StoreMeasuredSlot(length_word, slot);
  CopyBytes(fault);
  a_.mov(kCursor, r9);
}

// The last of several words overlaps the one before, so as not to read behind the end.
void StringCode::CopyBytes(Label& fault) {
  Label words, brief, bytes, done;
  a_.lea(r9, ptr[kCursor + rcx]);
  a_.sub(rcx, 8);
  a_.jb(brief);
  a_.L(words);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(ptr[kCursor], rax);
  a_.add(rsi, 8);
  a_.add(kCursor, 8);
  a_.sub(rcx, 8);
  a_.jae(words);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi + rcx]);
  a_.mov(ptr[kCursor + rcx], rax);
  a_.jmp(done);
  a_.L(brief);
  a_.add(ecx, 8);
  a_.jz(done);
  a_.L(bytes);
  a_.MayFault(fault);
  a_.movzx(eax, byte[rsi]);
  a_.mov(byte[kCursor], al);
  a_.inc(rsi);
  a_.inc(kCursor);
  a_.dec(ecx);
  a_.jnz(bytes);
  a_.L(done);
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
  FindNul(found);
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
  FindNul(found);
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

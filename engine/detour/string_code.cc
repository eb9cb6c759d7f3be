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
  a_.lea(ecx, ptr[rdx * 8]);  // shifts take it modulo 64
  a_.mov(r9, -1);
  a_.shl(r9, cl);
  a_.not_(r9);
  a_.or_(rax, r9);
}

void StringCode::Measure(int32_t offset, std::optional<uint32_t> length_word) {
  Label next, found, too_long, done;
  a_.lea(rdx, ptr[kValue + offset]);
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
void StringCode::StoreMeasuredSlot(uint32_t length_word, uint32_t slot) {
  a_.mov(ecx, dword[rsp + length_word]);
  a_.mov(eax, edi);
  a_.sub(eax, kRecord.cvt32());
  a_.sub(eax, payload_);
  a_.mov(dword[kRecord + (payload_ + slot)], eax);
  a_.mov(dword[kRecord + (payload_ + slot + 4)], ecx);
  if (!kernel_rules_) a_.and_(ecx, ~lang::kTruncatedBit);
}

// Its bytes may have changed meanwhile, but not its length.
void StringCode::CopyMeasured(int32_t offset, uint32_t length_word, uint32_t slot) {
  const auto fault = std::make_shared<Label>();
  const auto done = std::make_shared<Label>();
  Label brief;
  a_.lea(rsi, ptr[kValue + offset]);
  StoreMeasuredSlot(length_word, slot);
  a_.lea(r9, ptr[kCursor + rcx]);
  a_.cmp(ecx, 8);
  a_.jb(brief);
  CopyWords(*fault);
  a_.jmp(*done);
  a_.L(brief);
  CopyShort(*fault);
  a_.L(*done);
  a_.mov(kCursor, r9);
  a_.Later([=, this] {
    a_.L(*fault);
    a_.mov(dword[kRecord + (payload_ + slot + 4)], lang::kFaultSlot);
    a_.jmp(*done, CodeGenerator::T_NEAR);
  });
}

// At least one. The last overlaps the one before, so as not to read behind the string.
void StringCode::CopyWords(Label& fault) {
  Label next;
  a_.L(next);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(ptr[kCursor], rax);
  a_.add(rsi, 8);
  a_.add(kCursor, 8);
  a_.sub(ecx, 8);
  a_.cmp(ecx, 8);
  a_.jae(next);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi + rcx - 8]);
  a_.mov(ptr[kCursor + rcx - 8], rax);
}

// Less than a word. Near the end of a page, where a whole word could reach into another, the one
// that ends with the NUL is read. The store may write a few bytes more than the string has.
void StringCode::CopyShort(Label& fault) {
  Label edge, store;
  a_.mov(eax, esi);
  a_.and_(eax, 4095);
  a_.cmp(eax, 4088);
  a_.ja(edge);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.jmp(store);
  a_.L(edge);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi + rcx - 7]);
  a_.xor_(ecx, 7);
  a_.shl(ecx, 3);
  a_.shr(rax, cl);
  a_.L(store);
  a_.mov(ptr[kCursor], rax);
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
  a_.mov(r9, -1);
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

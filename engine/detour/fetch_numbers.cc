// FetchEmitter: numbers, and what the payload holds before anything is fetched.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/detour/body_registers.h"
#include "engine/detour/fetch_emitter.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using lang::FetchField;
using lang::FetchOp;
using Xbyak::CodeGenerator;

void FetchEmitter::SetLength(const FetchOp& op) {
  const int unused = 64 - 8 * op.size;
  if (unused != 0) {
    a_.shl(rax, unused);
    op.is_signed ? a_.sar(rax, unused) : a_.shr(rax, unused);
  }
  ExtractBits(op);
  a_.mov(a_.Slot(a_.frame().length()), rax);
}

// As the interpreter: in the container's width, shift counts modulo the operand's.
void FetchEmitter::ExtractBits(const FetchOp& op) {
  if (op.shift_left == 0 && op.shift_right == 0) return;
  if (op.size == 8) {
    a_.shl(rax, op.shift_left & 63);
    return a_.shr(rax, op.shift_right & 63);
  }
  a_.shl(eax, op.shift_left & 31);
  if (op.size == 1) a_.movzx(eax, al);
  if (op.size == 2) a_.movzx(eax, ax);
  a_.shr(eax, op.shift_right & 31);
}

void FetchEmitter::StoreNumber(const Xbyak::RegExp& to, uint8_t size) {
  if (size == 1) return a_.mov(byte[to], al);
  if (size == 2) return a_.mov(word[to], ax);
  if (size == 4) return a_.mov(dword[to], eax);
  a_.mov(qword[to], rax);
}

void FetchEmitter::LoadElement(const FetchOp& op, Label& fault) {
  a_.MayFault(fault);
  if (op.size == 1) return a_.movzx(eax, byte[rsi]);
  if (op.size == 2) return a_.movzx(eax, word[rsi]);
  if (op.size == 4) return a_.mov(eax, dword[rsi]);
  a_.mov(rax, qword[rsi]);
}

// Each element by itself: those behind an unreadable page still count.
void FetchEmitter::StoreMemory(const FetchOp& op) {
  Label element, next;
  const auto partly = std::make_shared<Label>();
  const auto got = std::make_shared<Label>();
  const int slot = static_cast<int>(payload_ + op.slot);
  const bool is_array = op.count > 1;
  a_.lea(rsi, ptr[kValue + op.offset]);
  if (is_array) a_.lea(r9, ptr[kRecord + slot]);
  a_.L(element);
  LoadElement(op, op.size == 1 ? next : *partly);
  a_.L(*got);
  ExtractBits(op);
  StoreNumber(is_array ? Xbyak::RegExp(r9) : kRecord + slot, op.size);
  a_.L(next);
  if (is_array) {
    a_.add(rsi, op.size);
    a_.add(r9, op.size);
    a_.mov(rcx, r9);
    a_.sub(rcx, kRecord);
    a_.cmp(rcx, slot + op.size * op.count);
    a_.jb(element);
  }
  if (op.size > 1) a_.Later([=, this] { LoadPartly(op, *partly, *got); });
}

// Of an element that runs into an unreadable page the bytes before it count.
void FetchEmitter::LoadPartly(const FetchOp& op, Label& begin, Label& done) {
  Label more;
  a_.L(begin);
  a_.xor_(eax, eax);
  a_.xor_(ecx, ecx);
  a_.L(more);
  a_.MayFault(done);
  a_.movzx(edx, byte[rsi + rcx]);
  a_.shl(ecx, 3);
  a_.shl(rdx, cl);
  a_.shr(ecx, 3);
  a_.or_(rax, rdx);
  a_.inc(ecx);
  a_.cmp(ecx, op.size);
  a_.jb(more);
  a_.jmp(done, CodeGenerator::T_NEAR);
}

void FetchEmitter::StoreInitial() {
  uint32_t begin = 0;
  std::vector<bool> certain(code_.initial.size());
  for (const FetchField& field : code_.fields) {
    const FetchOp& store = code_.ops[field.end - 1];
    if (IsCertain(field)) std::fill_n(certain.begin() + store.slot, store.size, true);
    if (LengthWordOf(code_, field)) {  // stored where it turns out to be missing
      std::fill_n(certain.begin() + store.slot, sizeof(uint64_t), true);
    }
  }
  while (begin < certain.size()) {
    const auto from = std::find(certain.begin() + begin, certain.end(), false);
    const auto to = std::find(from, certain.end(), true);
    StoreInitial(static_cast<uint32_t>(from - certain.begin()),
                 static_cast<uint32_t>(to - certain.begin()));
    begin = static_cast<uint32_t>(to - certain.begin());
  }
}

void FetchEmitter::StoreInitial(uint32_t begin, uint32_t end) {
  while (begin < end) {
    const uint32_t repeated = StoreRepeated(begin, end);
    begin += repeated;
    if (repeated != 0) continue;
    const uint8_t size = end - begin >= 8 ? 8 : end - begin >= 4 ? 4 : end - begin >= 2 ? 2 : 1;
    uint64_t word = 0;
    std::memcpy(&word, code_.initial.data() + begin, size);
    a_.mov(rax, word);
    StoreNumber(kRecord + (payload_ + begin), size);
    begin += size;
  }
}

// A long run of equal words, as a loop. Returns how many bytes it stores.
uint32_t FetchEmitter::StoreRepeated(uint32_t begin, uint32_t end) {
  constexpr uint32_t kWorthALoop = 8;
  const std::byte* const first = code_.initial.data() + begin;
  uint32_t count = 0;
  while (begin + 8 * (count + 1) <= end && std::memcmp(first, first + 8 * count, 8) == 0)
    ++count;
  if (count < kWorthALoop) return 0;
  uint64_t word = 0;
  std::memcpy(&word, first, sizeof(word));
  Label more;
  a_.mov(rax, word);
  a_.lea(rsi, ptr[kRecord + (payload_ + begin)]);
  a_.mov(ecx, count);
  a_.L(more);
  a_.mov(ptr[rsi], rax);
  a_.add(rsi, 8);
  a_.dec(ecx);
  a_.jnz(more);
  return 8 * count;
}

}  // namespace probed::detour

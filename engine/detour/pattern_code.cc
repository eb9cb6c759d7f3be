#include "engine/detour/pattern_code.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using lang::PatternByte;
using lang::PatternPiece;

namespace {

constexpr auto kNear = Xbyak::CodeGenerator::T_NEAR;

size_t LiteralLength(const PatternPiece& piece, size_t at) {
  size_t length = 0;
  while (at + length < piece.size() && piece[at + length].count() == 1)
    ++length;
  return length;
}

uint8_t ValueOf(const PatternByte& byte) {
  size_t value = 0;
  while (!byte[value])
    ++value;
  return static_cast<uint8_t>(value);
}

}  // namespace

PatternCode::PatternCode(Assembler& assembler, const lang::FilterPattern& pattern)
    : a_(assembler), pieces_(lang::SplitPattern(pattern)) {}

void PatternCode::Emit(Label& match, Label& mismatch) {
  const size_t count = pieces_.size();
  MatchStart(pieces_.front(), count == 1, mismatch);
  for (size_t i = 1; i + 1 < count; ++i)
    MatchAnywhere(pieces_[i], mismatch);
  if (count > 1) MatchEnd(pieces_.back(), mismatch);
  a_.jmp(match, kNear);
}

// ZF: no more than that is left.
void PatternCode::NeedLength(size_t length, Label& mismatch) {
  a_.mov(rax, rdx);
  a_.sub(rax, rsi);
  a_.cmp(rax, static_cast<uint32_t>(length));
  a_.jb(mismatch, kNear);
}

void PatternCode::MatchStart(const PatternPiece& piece, bool is_whole, Label& mismatch) {
  if (piece.empty() && !is_whole) return;
  NeedLength(piece.size(), mismatch);
  if (is_whole) a_.jne(mismatch, kNear);
  MatchBytes(piece, mismatch, mismatch);
  a_.add(rsi, static_cast<uint32_t>(piece.size()));
}

void PatternCode::MatchAnywhere(const PatternPiece& piece, Label& mismatch) {
  if (piece.empty()) return;
  Label here, next, found;
  a_.L(here);
  NeedLength(piece.size(), mismatch);
  MatchBytes(piece, next, mismatch);
  a_.add(rsi, static_cast<uint32_t>(piece.size()));
  a_.jmp(found, kNear);
  a_.L(next);
  a_.inc(rsi);
  a_.jmp(here, kNear);
  a_.L(found);
}

void PatternCode::MatchEnd(const PatternPiece& piece, Label& mismatch) {
  if (piece.empty()) return;
  NeedLength(piece.size(), mismatch);
  a_.lea(rsi, ptr[rdx - static_cast<uint32_t>(piece.size())]);
  MatchBytes(piece, mismatch, mismatch);
}

void PatternCode::MatchBytes(const PatternPiece& piece, Label& other, Label& unreadable) {
  for (size_t at = 0; at < piece.size();) {
    const size_t literal = LiteralLength(piece, at);
    if (literal == 0) {
      MatchSet(piece[at], at, other, unreadable);
      ++at;
      continue;
    }
    const size_t size = literal >= 8 ? 8 : literal >= 4 ? 4 : 1;
    uint64_t text = 0;
    for (size_t i = 0; i < size; ++i)
      text |= uint64_t{ValueOf(piece[at + i])} << 8 * i;
    if (size == 8) a_.mov(rax, text);
    a_.MayFault(unreadable);
    if (size == 8) a_.cmp(ptr[rsi + at], rax);
    if (size == 4) a_.cmp(dword[rsi + at], static_cast<uint32_t>(text));
    if (size == 1) a_.cmp(byte[rsi + at], static_cast<uint32_t>(text));
    a_.jne(other, kNear);
    at += size;
  }
}

// One comparison for each run of values.
void PatternCode::MatchSet(const PatternByte& set, size_t at, Label& other, Label& unreadable) {
  if (set.all()) return;
  Label matched;
  a_.MayFault(unreadable);
  a_.movzx(eax, byte[rsi + at]);
  for (size_t first = 0; first < set.size(); ++first) {
    if (!set[first]) continue;
    size_t last = first;
    while (last + 1 < set.size() && set[last + 1])
      ++last;
    a_.lea(ecx, ptr[rax - first]);
    a_.cmp(ecx, static_cast<uint32_t>(last - first));
    a_.jbe(matched, kNear);
    first = last;
  }
  a_.jmp(other, kNear);
  a_.L(matched);
}

}  // namespace probed::detour

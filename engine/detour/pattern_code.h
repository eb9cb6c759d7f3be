#pragma once
// Machine code that matches text of known length with a filter's pattern. A loop looks at each
// place of the text once for each piece, as lang::GlobMatches does at worst.

#include <vector>

#include "engine/detour/assembler.h"
#include "engine/lang/filter_pattern.h"

namespace probed::detour {

class PatternCode {
 public:
  PatternCode(Assembler& assembler, const lang::FilterPattern& pattern);

  // The text is at rsi up to rdx; changes rax, rcx and rsi. Where it cannot be read it does not
  // match.
  void Emit(Label& match, Label& mismatch);

 private:
  void NeedLength(size_t length, Label& mismatch);
  void MatchStart(const lang::PatternPiece& piece, bool is_whole, Label& mismatch);
  void MatchAnywhere(const lang::PatternPiece& piece, Label& mismatch);
  void MatchEnd(const lang::PatternPiece& piece, Label& mismatch);
  void MatchBytes(const lang::PatternPiece& piece, Label& other, Label& unreadable);
  void MatchSet(const lang::PatternByte& set, size_t at, Label& other, Label& unreadable);

  Assembler& a_;
  const std::vector<lang::PatternPiece> pieces_;
};

}  // namespace probed::detour

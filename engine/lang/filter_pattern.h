#pragma once
// Matching of filter strings. Pure.

#include <bitset>
#include <string_view>
#include <vector>

#include "engine/lang/filter_code.h"

namespace probed::lang {

struct PatternSyntax {
  bool negated = false;  // a leading '!'
  FilterPattern pattern;
};
// The operand of '~'. `digits_are_literal`: as in the kernel, where a pattern that begins with a
// digit has no wildcards.
PatternSyntax ParsePattern(std::string_view text, bool digits_are_literal);

// `unreadable`: the string is a fault, and `text` empty.
bool Matches(const FilterPattern& pattern, std::string_view text, bool unreadable);

// A pattern between its '*': the text begins with the first piece, ends with the last, and has the
// others in this order in between. One piece alone is the whole text. Each is a run of bytes, for
// which several values may do.
using PatternByte = std::bitset<256>;
using PatternPiece = std::vector<PatternByte>;
std::vector<PatternPiece> SplitPattern(const FilterPattern& pattern);

// '*', '?', "[set]", "[!set]", "\\c"; a set that is not closed is a literal '['.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace probed::lang

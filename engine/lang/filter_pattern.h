#pragma once
// Matching of filter strings. Pure.

#include <string_view>

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

// '*', '?', "[set]", "[!set]", "\\c"; a set that is not closed is a literal '['.
bool GlobMatches(std::string_view pattern, std::string_view text);

}  // namespace probed::lang

#include "elf/glob.h"

#include <cstddef>

namespace probed::elf {
namespace {

struct Step {
  bool matches;
  size_t length;  // of the pattern element
};

Step MatchClass(std::string_view pattern, char c) {
  bool negated = pattern.size() > 1 && pattern[1] == '!';
  size_t start = negated ? 2 : 1;
  bool inside = false;
  for (size_t i = start; i < pattern.size(); ++i) {
    if (pattern[i] == ']' && i > start) return {inside != negated, i + 1};
    bool is_range = i + 2 < pattern.size() && pattern[i + 1] == '-' && pattern[i + 2] != ']';
    char last = is_range ? pattern[i + 2] : pattern[i];
    inside = inside || (pattern[i] <= c && c <= last);
    if (is_range) i += 2;
  }
  return {c == '[', 1};
}

Step MatchOne(std::string_view pattern, char c) {
  switch (pattern[0]) {
    case '?':
      return {true, 1};
    case '[':
      return MatchClass(pattern, c);
    case '\\':
      if (pattern.size() > 1) return {pattern[1] == c, 2};
      return {c == '\\', 1};
    default:
      return {pattern[0] == c, 1};
  }
}

}  // namespace

bool GlobMatches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0;
  size_t after_star = std::string_view::npos, star_name = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_name = n;
      continue;
    }
    Step step = p < pattern.size() ? MatchOne(pattern.substr(p), name[n]) : Step{false, 0};
    if (step.matches) {
      p += step.length;
      ++n;
    } else if (after_star != std::string_view::npos) {
      // Only the latest star needs another try: what came before it is settled.
      p = after_star;
      n = ++star_name;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*')
    ++p;
  return p == pattern.size();
}

}  // namespace probed::elf

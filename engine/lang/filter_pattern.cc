#include "engine/lang/filter_pattern.h"

#include <cstddef>
#include <optional>

#include "engine/lang/ctype.h"

namespace probed::lang {
namespace {

using Kind = FilterPattern::Kind;

Kind KindOf(std::string_view text) {
  if (text.find_first_of("[?\\") != std::string_view::npos) return Kind::kGlob;
  const bool open_start = text.starts_with('*');
  const bool open_end = text.size() > 1 && text.ends_with('*');
  std::string_view inner = text.substr(open_start ? 1 : 0);
  if (open_end) inner.remove_suffix(1);
  if (inner.find('*') != std::string_view::npos) return Kind::kGlob;
  if (open_start) return open_end ? Kind::kAnywhere : Kind::kEnd;
  return open_end ? Kind::kStart : Kind::kWhole;
}

std::string_view Inner(Kind kind, std::string_view text) {
  if (kind == Kind::kEnd || kind == Kind::kAnywhere) text.remove_prefix(1);
  if (kind == Kind::kStart || kind == Kind::kAnywhere) text.remove_suffix(1);
  return text;
}

// "[set]" at the start of a pattern.
struct Set {
  bool matches = false;
  size_t length = 0;
};

// The first member may be ']'; a '-' before the closing ']' is a member.
std::optional<Set> ReadSet(std::string_view pattern, unsigned char c) {
  const bool inverted = pattern.size() > 1 && pattern[1] == '!';
  const size_t first = inverted ? 2 : 1;
  bool found = false;
  for (size_t i = first; i < pattern.size();) {
    if (pattern[i] == ']' && i > first) return Set{found != inverted, i + 1};
    const auto low = static_cast<unsigned char>(pattern[i++]);
    unsigned char high = low;
    if (i < pattern.size() && pattern[i] == '-' && !pattern.substr(i + 1).starts_with(']')) {
      if (i + 1 == pattern.size()) return std::nullopt;
      high = static_cast<unsigned char>(pattern[i + 1]);
      i += 2;
    }
    found |= low <= c && c <= high;
  }
  return std::nullopt;
}

// Bytes of the pattern that `c` takes, when the pattern does not begin with '*'.
std::optional<size_t> MatchOne(std::string_view pattern, char c) {
  if (pattern.empty()) return std::nullopt;
  if (pattern[0] == '?') return 1;
  if (pattern[0] == '[') {
    if (const auto set = ReadSet(pattern, static_cast<unsigned char>(c))) {
      return set->matches ? std::optional(set->length) : std::nullopt;
    }
  }
  // A backslash at the end stands for the end of the text.
  if (pattern[0] != '\\') return pattern[0] == c ? std::optional<size_t>(1) : std::nullopt;
  return pattern.size() > 1 && pattern[1] == c ? std::optional<size_t>(2) : std::nullopt;
}

PatternPiece LiteralPiece(std::string_view text) {
  PatternPiece piece;
  for (const char c : text)
    piece.push_back(PatternByte().set(static_cast<unsigned char>(c)));
  return piece;
}

// Bytes of the pattern that stand for one of the text: as MatchOne says for those that do.
size_t LengthOfOne(std::string_view pattern) {
  if (pattern[0] == '\\') return 2;
  const auto set = pattern[0] == '[' ? ReadSet(pattern, 0) : std::nullopt;
  return set ? set->length : 1;
}

std::vector<PatternPiece> SplitGlob(std::string_view pattern) {
  std::vector<PatternPiece> pieces(1);
  while (!pattern.empty() && pattern != "\\") {
    if (pattern[0] == '*') {
      pieces.emplace_back();
      pattern.remove_prefix(1);
      continue;
    }
    PatternByte& byte = pieces.back().emplace_back();
    for (size_t value = 0; value < byte.size(); ++value)
      byte[value] = MatchOne(pattern, static_cast<char>(value)).has_value();
    pattern.remove_prefix(LengthOfOne(pattern));
  }
  return pieces;
}

}  // namespace

std::vector<PatternPiece> SplitPattern(const FilterPattern& pattern) {
  const PatternPiece text = LiteralPiece(pattern.text);
  switch (pattern.kind) {
    case Kind::kWhole:
      return {text};
    case Kind::kStart:
      return {text, {}};
    case Kind::kEnd:
      return {{}, text};
    case Kind::kAnywhere:
      return {{}, text, {}};
    case Kind::kGlob:
      return SplitGlob(pattern.text);
  }
  return {};
}

PatternSyntax ParsePattern(std::string_view text, bool digits_are_literal) {
  PatternSyntax syntax;
  syntax.negated = text.starts_with('!');
  if (syntax.negated) text.remove_prefix(1);
  const bool literal = digits_are_literal && !text.empty() && IsDigit(text[0]);
  syntax.pattern.kind = literal ? Kind::kWhole : KindOf(text);
  syntax.pattern.text = Inner(syntax.pattern.kind, text);
  // The kernel finds no end in what it could not read, not even the empty one.
  if (syntax.pattern.kind == Kind::kEnd) syntax.pattern.min_length = 0;
  return syntax;
}

bool Matches(const FilterPattern& pattern, std::string_view text, bool unreadable) {
  const int64_t length = unreadable ? -1 : static_cast<int64_t>(text.size());
  if (length < pattern.min_length) return false;
  switch (pattern.kind) {
    case Kind::kWhole:
      return text == pattern.text;
    case Kind::kStart:
      return text.starts_with(pattern.text);
    case Kind::kEnd:
      return text.ends_with(pattern.text);
    case Kind::kAnywhere:
      return text.find(pattern.text) != std::string_view::npos;
    case Kind::kGlob:
      return GlobMatches(pattern.text, text);
  }
  return false;
}

bool GlobMatches(std::string_view pattern, std::string_view text) {
  // Only the last '*' need ever take more: what stands before it has matched already.
  std::optional<std::string_view> after_star;
  size_t resume = 0;
  for (size_t at = 0;;) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      if (pattern.empty()) return true;
      after_star = pattern;
      resume = at;
      continue;
    }
    if (at == text.size() && (pattern.empty() || pattern == "\\")) return true;
    if (at < text.size()) {
      if (const auto taken = MatchOne(pattern, text[at])) {
        pattern.remove_prefix(*taken);
        ++at;
        continue;
      }
    }
    if (at >= text.size() || !after_star) return false;
    pattern = *after_star;
    at = ++resume;
  }
}

}  // namespace probed::lang

#include "engine/lang/line.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/lang/ctype.h"
#include "engine/lang/definition_set.h"

namespace probed::lang {

std::vector<std::string> Tokenize(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string> tokens;
  auto position = line.begin();
  while (true) {
    const auto start = std::find_if_not(position, line.end(), IsSpace);
    if (start == line.end()) return tokens;
    position = std::find_if(start, line.end(), IsSpace);
    tokens.emplace_back(start, position);
  }
}

std::string JoinTokens(const std::vector<std::string>& tokens) {
  return fmt::format("{}", fmt::join(tokens, " "));
}

// The kernel copies at most kWriteBuffer - 1 bytes at a time and goes back to the last newline in
// them. A NUL byte ends what it sees, which makes the line look like one that never ends.
std::vector<InputLine> SplitLines(std::string_view bytes) {
  std::vector<InputLine> lines;
  while (!bytes.empty()) {
    const std::string_view window = bytes.substr(0, kWriteBuffer - 1);
    const size_t end = std::min(window.find('\n'), window.find('\0'));
    const bool has_newline = end < window.size() && window[end] == '\n';
    const bool is_rest = end >= window.size() && window.size() == bytes.size();
    if (!has_newline && !is_rest) {
      lines.push_back({std::string(bytes), true});
      return lines;
    }
    const size_t length = has_newline ? end : window.size();
    lines.push_back({std::string(bytes.substr(0, length)), false});
    bytes.remove_prefix(length + (has_newline ? 1 : 0));
  }
  return lines;
}

namespace {

// `[MOD:]SYM[+off]` and addresses are kprobes; a '/' makes a uprobe of it (kernel, 1.11).
LineDestination ClassifyPlace(std::string_view place, Dialect dialect) {
  if (place.find('/') != std::string_view::npos) return LineDestination::kUser;
  const bool has_colon = place.find(':') != std::string_view::npos;
  if (has_colon && dialect == Dialect::kExtended) return LineDestination::kUser;
  return LineDestination::kKernel;
}

bool IsNameByte(char c, bool wildcards) {
  return IsAlpha(c) || IsDigit(c) || c == '_' || c == '-' ||
         (wildcards && std::string_view("*?[]!").find(c) != std::string_view::npos);
}

}  // namespace

bool NamesEvents(std::string_view line) {
  const std::vector<std::string> tokens = Tokenize(line);
  if (tokens.size() != 1) return false;
  const std::string_view word = tokens[0];
  const size_t colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == word.size()) return false;
  const auto all_names = [](std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return IsNameByte(c, true); });
  };
  const std::string_view group = word.substr(0, colon);
  if (!all_names(group) || !all_names(word.substr(colon + 1))) return false;
  // "r100:name" lacks its place; no group of the kernel's has one letter.
  const bool is_kind = IsAlpha(group[0]) && std::all_of(group.begin() + 1, group.end(), IsDigit);
  return !is_kind && group[0] != '-';
}

LineDestination Classify(std::string_view line, Dialect dialect) {
  const std::vector<std::string> tokens = Tokenize(line);
  if (tokens.empty()) return LineDestination::kEmpty;
  if (line.starts_with('-')) return LineDestination::kDeletion;
  if (NamesEvents(line)) return LineDestination::kKernel;
  const std::string& kind = tokens[0];
  switch (kind[0]) {
    case 'p':
    case 'r':
      if (tokens.size() < 2) return LineDestination::kMalformed;
      return ClassifyPlace(tokens[1], dialect);
    case 'f':
    case 't':
    case 'e':
    case 's':
      if (kind.size() == 1 || kind[1] == ':' || IsDigit(kind[1])) return LineDestination::kKernel;
      return LineDestination::kMalformed;
    default:
      return LineDestination::kMalformed;
  }
}

}  // namespace probed::lang

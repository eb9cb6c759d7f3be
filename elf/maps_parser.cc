#include <sys/sysmacros.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "elf/module_map.h"

namespace probed::elf {
namespace {

constexpr std::string_view kDeleted = " (deleted)";

// Takes the fields of one line from the left; a field that is not as proc(5) says fails the line.
class LineParser {
 public:
  explicit LineParser(std::string_view line) : rest_(line) {}

  bool ok() const { return ok_; }

  uint64_t Number(int base) {
    uint64_t value = 0;
    auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc{}) ok_ = false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }

  void Expect(char c) {
    if (rest_.empty() || rest_.front() != c) ok_ = false;
    if (ok_) rest_.remove_prefix(1);
  }

  std::string_view Take(size_t count) {
    if (rest_.size() < count) ok_ = false;
    std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  // The path is padded on the left, and may begin with anything but a space.
  std::string_view Path() {
    size_t start = rest_.find_first_not_of(' ');
    return start == std::string_view::npos ? std::string_view{} : rest_.substr(start);
  }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

// fs/seq_file.c writes a newline as \012 and leaves everything else, backslashes too, as it is.
std::string Unescape(std::string_view text) {
  constexpr std::string_view kNewline = "\\012";
  std::string result;
  for (size_t at; (at = text.find(kNewline)) != std::string_view::npos;) {
    result.append(text.substr(0, at)).append(1, '\n');
    text.remove_prefix(at + kNewline.size());
  }
  return result.append(text);
}

void ParsePermissions(std::string_view text, Mapping* mapping) {
  if (text.size() != 4) return;
  mapping->readable = text[0] == 'r';
  mapping->writable = text[1] == 'w';
  mapping->executable = text[2] == 'x';
  mapping->shared = text[3] == 's';
}

void ParsePath(std::string_view text, Mapping* mapping) {
  mapping->deleted = text.ends_with(kDeleted);
  if (mapping->deleted) text.remove_suffix(kDeleted.size());
  mapping->path = Unescape(text);
}

std::optional<Mapping> ParseLine(std::string_view line) {
  Mapping mapping;
  LineParser parser(line);
  mapping.start = {parser.Number(16)};
  parser.Expect('-');
  mapping.end = {parser.Number(16)};
  parser.Expect(' ');
  ParsePermissions(parser.Take(4), &mapping);
  parser.Expect(' ');
  mapping.offset = {parser.Number(16)};
  parser.Expect(' ');
  uint64_t major = parser.Number(16);
  parser.Expect(':');
  uint64_t minor = parser.Number(16);
  mapping.device = makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  parser.Expect(' ');
  mapping.inode = parser.Number(10);
  ParsePath(parser.Path(), &mapping);
  if (!parser.ok() || mapping.end <= mapping.start) return std::nullopt;
  return mapping;
}

}  // namespace

Result<std::vector<Mapping>> ParseMaps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto mapping = ParseLine(line);
    if (!mapping) {
      return Error{.code = ErrorCode::kInternal,
                   .reason = "MAPS_MALFORMED",
                   .message = "cannot read this line of a memory map: " + std::string(line),
                   .hint = "",
                   .metadata = {}};
    }
    mappings.push_back(*std::move(mapping));
  }
  return mappings;
}

}  // namespace probed::elf

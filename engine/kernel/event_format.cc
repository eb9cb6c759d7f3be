#include "engine/kernel/event_format.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

// A record is no larger than a page of 64 KiB; an offset word has 16 bits.
constexpr uint32_t kMaxRecordBytes = 1 << 16;

Error BadFormat(std::string_view what, std::string_view line) {
  return {.code = ErrorCode::kInternal,
          .reason = "BAD_EVENT_FORMAT",
          .message = fmt::format("{} in the format of an event: {}", what, line.substr(0, 200)),
          .hint = "",
          .metadata = {}};
}

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

std::optional<uint32_t> ToNumber(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The part "KEY:VALUE" of a line whose parts end in ';'.
std::string_view ValueOf(std::string_view line, std::string_view key) {
  while (!line.empty()) {
    const size_t end = std::min(line.find(';'), line.size());
    const std::string_view part = Trim(line.substr(0, end));
    if (part.starts_with(key)) return Trim(part.substr(key.size()));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return {};
}

// Cuts "[...]" off the end.
std::optional<std::string_view> TakeBrackets(std::string_view& text) {
  if (!text.ends_with(']')) return std::nullopt;
  const size_t open = text.rfind('[');
  if (open == text.npos) return std::nullopt;
  const std::string_view inside = Trim(text.substr(open + 1, text.size() - open - 2));
  text = Trim(text.substr(0, open));
  return inside;
}

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string_view TakeName(std::string_view& text) {
  size_t begin = text.size();
  while (begin > 0 && IsNameCharacter(text[begin - 1]))
    --begin;
  const std::string_view name = text.substr(begin);
  text = Trim(text.substr(0, begin));
  return name;
}

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// `__data_loc char[] name`, `__data_loc char[][2] name`, `__data_loc cpumask_t name`.
void ParseLocatedType(std::string_view type, FormatField& field) {
  if (const auto last = TakeBrackets(type); last && !last->empty()) {
    field.is_array = true;
    field.dimension = *last;
    TakeBrackets(type);
  }
  field.type = type;
}

bool ParseDeclaration(std::string_view declaration, FormatField& field) {
  if (TakePrefix(declaration, "__data_loc ")) field.place = FormatField::Place::kDataLoc;
  if (TakePrefix(declaration, "__rel_loc ")) field.place = FormatField::Place::kRelLoc;
  if (const auto dimension = TakeBrackets(declaration)) {
    field.is_array = true;
    field.dimension = *dimension;
  }
  field.name = TakeName(declaration);
  if (field.name.empty() || declaration.empty()) return false;
  if (field.place == FormatField::Place::kHere) {
    field.type = declaration;
  } else {
    ParseLocatedType(declaration, field);
  }
  return true;
}

Result<FormatField> ParseField(std::string_view line) {
  FormatField field;
  if (!ParseDeclaration(ValueOf(line, "field:"), field)) return BadFormat("no declaration", line);
  const auto offset = ToNumber(ValueOf(line, "offset:"));
  const auto size = ToNumber(ValueOf(line, "size:"));
  if (!offset || !size || *offset > kMaxRecordBytes || *size > kMaxRecordBytes - *offset)
    return BadFormat("no place in the record", line);
  field.offset = *offset;
  field.size = *size;
  field.is_signed = ValueOf(line, "signed:") == "1";
  return field;
}

struct CommonField {
  std::string_view name;
  uint32_t offset;
  uint32_t size;
};
constexpr CommonField kCommonFields[] = {{"common_type", 0, 2},
                                         {"common_flags", kCommonFlagsOffset, 1},
                                         {"common_preempt_count", kCommonPreemptCountOffset, 1},
                                         {"common_pid", kCommonPidOffset, 4}};

// Takes the common fields out.
bool TakeCommonFields(std::vector<FormatField>& fields) {
  for (const CommonField& common : kCommonFields) {
    const auto is_it = [&](const FormatField& field) {
      return field.name == common.name && field.offset == common.offset &&
             field.size == common.size;
    };
    if (std::none_of(fields.begin(), fields.end(), is_it)) return false;
  }
  std::erase_if(fields, [](const FormatField& field) { return field.name.starts_with("common_"); });
  return true;
}

}  // namespace

const FormatField* EventFormat::Find(std::string_view field) const {
  const auto is_it = [&](const FormatField& candidate) { return candidate.name == field; };
  const auto found = std::find_if(fields.begin(), fields.end(), is_it);
  return found == fields.end() ? nullptr : &*found;
}

std::string NameIn(const std::string& format) {
  std::string_view line = std::string_view(format).substr(0, format.find('\n'));
  return TakePrefix(line, "name: ") ? std::string(line) : "";
}

std::string WithName(const std::string& format, const std::string& event) {
  return "name: " + event + format.substr(std::min(format.find('\n'), format.size()));
}

Result<EventFormat> ParseEventFormat(std::string_view text) {
  EventFormat format;
  std::optional<uint32_t> id;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    if (TakePrefix(line, "name: ")) {
      format.name = line;
    } else if (TakePrefix(line, "ID: ")) {
      id = ToNumber(line);
    } else if (TakePrefix(line, "print fmt: ")) {
      format.print_format = line;
    } else if (Trim(line).starts_with("field:")) {
      PROBED_TRY(FormatField field, ParseField(line));
      format.fields.push_back(std::move(field));
    }
  }
  if (format.name.empty()) return BadFormat("no name", text);
  if (!id || *id > UINT16_MAX) return BadFormat("no ID", format.name);
  if (!TakeCommonFields(format.fields)) return BadFormat("no common fields", format.name);
  format.id = static_cast<uint16_t>(*id);
  return format;
}

}  // namespace probed::kernel

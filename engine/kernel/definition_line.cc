#include "engine/kernel/definition_line.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/lang/line.h"
#include "engine/lang/place.h"

namespace probed::kernel {
namespace {

constexpr size_t kMaxGenerated = 40;
constexpr std::string_view kSynthetic = "synthetic";

LineKind KindOf(char letter, std::string_view place) {
  switch (letter) {
    case 'f':
      return LineKind::kFprobe;
    case 't':
      return LineKind::kTracepoint;
    case 'e':
      return LineKind::kEprobe;
    case 's':
      return LineKind::kSynthetic;
    default:
      return place.find('/') == std::string_view::npos ? LineKind::kKprobe : LineKind::kUprobe;
  }
}

// What the kernel calls groups that nobody has named.
std::string DefaultGroup(LineKind kind) {
  switch (kind) {
    case LineKind::kKprobe:
      return "kprobes";
    case LineKind::kUprobe:
      return "uprobes";
    case LineKind::kFprobe:
      return "fprobes";
    case LineKind::kTracepoint:
      return "tracepoints";
    case LineKind::kEprobe:
      return "eprobes";
    case LineKind::kSynthetic:
      return std::string(kSynthetic);
  }
  return "kprobes";
}

// As the kernel's own where they are identifiers: p_vfs_read_0, kfree__exit.
std::string GenerateName(LineKind kind, char letter, std::string_view place) {
  const bool exits = place.find('%') != std::string_view::npos;
  std::string name(place.substr(0, place.find('%')));
  if (kind == LineKind::kKprobe || kind == LineKind::kUprobe) {
    const bool offset = name.find('+') != std::string::npos || name.starts_with("0x");
    name = fmt::format("{}_{}{}", letter, name.substr(name.rfind('/') + 1), offset ? "" : "_0");
  } else if (kind == LineKind::kFprobe) {
    name += exits ? "__exit" : "__entry";
  }
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return c >= 0x80 || (std::isalnum(c) == 0 && c != '_'); }, '_');
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "_" + name;
  return name.substr(0, kMaxGenerated);
}

// Only the first word of the body may differ.
int WrittenBodyColumn(const DefinitionLine& line, int column) {
  const int longer = static_cast<int>(line.kernel_body.size()) - static_cast<int>(line.body.size());
  const auto word = static_cast<int>(std::min(line.body.find(' '), line.body.size()));
  return column > word + longer ? column - longer : std::min(column, word);
}

}  // namespace

lang::Judged<DefinitionLine> ParseDefinition(const std::vector<std::string>& tokens) {
  DefinitionLine line;
  line.written_head = tokens[0];
  line.body = lang::JoinTokens({tokens.begin() + 1, tokens.end()});
  line.kernel_body = line.body;
  const std::string_view place = tokens.size() > 1 ? std::string_view(tokens[1]) : "";
  const size_t colon = tokens[0].find(':');
  line.letter = tokens[0].substr(0, colon);
  line.kind = KindOf(line.letter[0], place);
  lang::EventName name;
  if (colon != std::string::npos) {
    const auto parsed = lang::ParseEventName(std::string_view(tokens[0]).substr(colon + 1),
                                             static_cast<int>(colon) + 1);
    if (!parsed.ok()) return parsed.error();
    name = *parsed;
  }
  line.group = name.group.empty() ? DefaultGroup(line.kind) : name.group;
  line.event_generated = name.event.empty();
  line.event = line.event_generated ? GenerateName(line.kind, line.letter[0], place) : name.event;
  return line;
}

KernelName NameOf(const DefinitionLine& line, const Owner& owner) {
  const std::string event = line.event + line.ending;
  if (line.kind == LineKind::kSynthetic) return {line.group, GroupPrefix(owner) + event};
  return {GroupPrefix(owner) + line.group, event};
}

std::string KernelHead(const DefinitionLine& line, const Owner& owner) {
  const KernelName name = NameOf(line, owner);
  return fmt::format("{}:{}/{}", line.letter, name.group, name.event);
}

std::string KernelLine(const DefinitionLine& line, const Owner& owner) {
  const std::string head = KernelHead(line, owner);
  return line.kernel_body.empty() ? head : head + " " + line.kernel_body;
}

int WrittenColumn(const DefinitionLine& line, const Owner& owner, int column) {
  const auto before_name = static_cast<int>(line.letter.size());
  const auto head = static_cast<int>(line.written_head.size());
  const int longer = static_cast<int>(KernelHead(line, owner).size()) - head;
  if (column >= head + longer) return WrittenBodyColumn(line, column - longer - head) + head;
  return std::clamp(column - longer, std::min(column, before_name), head - 1);
}

EventOrigin OriginOf(std::string_view letter, std::string_view body) {
  const std::string_view place = body.substr(0, body.find_first_of(" \t"));
  switch (KindOf(letter.empty() ? ' ' : letter[0], place)) {
    case LineKind::kKprobe:
    case LineKind::kFprobe:
    case LineKind::kTracepoint:
      return {.kind = EventOrigin::Kind::kKernelCode};
    case LineKind::kEprobe: {
      EventOrigin origin{.kind = EventOrigin::Kind::kEvent, .event = std::string(place)};
      std::replace(origin.event.begin(), origin.event.end(), '/', '.');
      return origin;
    }
    case LineKind::kUprobe:
    case LineKind::kSynthetic:
      break;
  }
  return {};
}

std::string ReadBack(const DynamicEvent& event) {
  std::string line =
      fmt::format("{}:{}/{}", event.kind, WithoutPrefix(event.group), WithoutPrefix(event.event));
  if (!event.body.empty()) line += " " + event.body;
  return line;
}

}  // namespace probed::kernel

#pragma once
// A definition as its writer knows it, and as the kernel gets it: under the daemon's prefix, so
// that it collides with nobody's and can be told from others' when the daemon is gone. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/dynamic_events.h"
#include "engine/kernel/event_schema.h"
#include "engine/kernel/owner.h"
#include "engine/lang/refusal.h"

namespace probed::kernel {

enum class LineKind : uint8_t {
  kKprobe,      // p, r on kernel code
  kUprobe,      // p, r on a file
  kFprobe,      // f
  kTracepoint,  // t
  kEprobe,      // e
  kSynthetic,   // s
};

struct DefinitionLine {
  LineKind kind = LineKind::kKprobe;
  std::string letter;  // "p", "r100"
  std::string group;   // as written, or the kernel's default
  std::string event;   // as written, or generated
  bool event_generated = false;
  std::string ending;       // of the event's name in the kernel: of several probes each is an event
  std::string body;         // place and arguments, single spaces
  std::string kernel_body;  // the same, with our own events as the kernel knows them
  std::string written_head;  // the first token, as it was written

  std::string command() const { return body.empty() ? written_head : written_head + " " + body; }
};

// Looks at the name alone; the rest is for the kernel to judge. The caret is in the first token.
lang::Judged<DefinitionLine> ParseDefinition(const std::vector<std::string>& tokens);

struct KernelName {
  std::string group, event;
  bool operator==(const KernelName&) const = default;
};
// What the kernel knows it by. Synthetic events all have one group.
KernelName NameOf(const DefinitionLine& line, const Owner& owner);
// The first word of the line as the kernel gets it, and the whole line.
std::string KernelHead(const DefinitionLine& line, const Owner& owner);
std::string KernelLine(const DefinitionLine& line, const Owner& owner);

// A column of the line that was given to the kernel as one of the line that was written.
int WrittenColumn(const DefinitionLine& line, const Owner& owner, int column);

// What a definition of that kind and body is of.
EventOrigin OriginOf(std::string_view letter, std::string_view body);

// The line that recreates `event`, without our prefix: what it is called by its writer.
std::string ReadBack(const DynamicEvent& event);

}  // namespace probed::kernel

#pragma once
// The shape of one event's record: its argument fields in order, packed without alignment.
// Produced from a definition; enough to decode and print a payload. Pure value type.

#include <cstdint>
#include <string>
#include <vector>

#include "engine/lang/type.h"

namespace probed::lang {

// kTracepoint: an event of the kernel that has no address.
enum class ProbeKind : uint8_t { kEntry, kReturn, kTracepoint };

struct FieldSchema {
  std::string name;
  ArgType type;
  uint32_t offset = 0;  // in the payload's fixed part
  uint32_t size = 0;    // ElementSize * count
};

struct EventSchema {
  ProbeKind kind = ProbeKind::kEntry;
  std::string group;
  std::string event;
  std::vector<FieldSchema> fields;
  uint32_t fixed_size = 0;
  // The last field, a string, is what the `trace` file shows behind the time: only the kernel's own
  // print fmt, or its symbols, can say it.
  bool has_text = false;
};

}  // namespace probed::lang

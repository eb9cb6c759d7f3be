#pragma once
// ftrace's text for values, formats and profiles, byte for byte. Pure.

#include <string>
#include <vector>

#include "engine/lang/schema.h"
#include "engine/lang/value.h"

namespace probed::lang {

// Appends " name=value" for each field. `values` has one entry per field. What ftrace does not
// know: f32 and f64 print as the shortest decimal that reads back the same; bytes print quoted,
// with \xNN for what is not printable ASCII and a backslash before '"' and '\'.
void AppendArguments(const EventSchema& schema, const std::vector<Value>& values, std::string& out);
void AppendArgument(const FieldSchema& field, const Value& value, std::string& out);

struct TraceLine {
  std::string comm;  // at most 15 bytes
  int tid = 0;       // what ftrace calls PID
  uint32_t cpu = 0;
  uint64_t monotonic_ns = 0;
  std::string flags = ".....";
  std::string event;  // without group
  ProbeKind kind = ProbeKind::kEntry;
  uint64_t ip = 0;        // entry: probed address; return: return address
  uint64_t function = 0;  // return probes: the probed function
};

// The five characters that stand for an event's common_flags and common_preempt_count: interrupts
// and bottom halves off, rescheduling due, interrupt context, depth of preempt_disable and of
// migrate_disable.
std::string TraceFlags(uint8_t flags, uint8_t preempt_count);

// A line of the `trace` file without its newline. Of a schema that has_text, its own.
std::string FormatTraceLine(const TraceLine& line, const EventSchema& schema,
                            const std::vector<Value>& values);
void AppendTraceLine(const TraceLine& line, const EventSchema& schema,
                     const std::vector<Value>& values, std::string& out);

// The `format` file of an event (`id` as given) and its print fmt.
std::string FormatFile(const EventSchema& schema, int id);

// A line of `uprobe_profile` without its newline.
std::string FormatProfileLine(const std::string& path, const std::string& event, uint64_t hits);

}  // namespace probed::lang

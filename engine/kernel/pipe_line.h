#pragma once
// A line of trace_pipe taken to pieces (kernel/trace/trace_output.c, trace_print_context). Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace probed::kernel {

struct PipeLine {
  int32_t tid = 0;
  uint8_t flags = 0;  // as common_flags of a record
  uint8_t preempt_count = 0;
  uint64_t time = 0;  // of a clock that counts
  std::string event;
  std::string_view text;  // behind the event's name; of a system call, which shows none, all of it
};

// Nothing: it is no record's first line.
std::optional<PipeLine> ParsePipeLine(std::string_view line);

// "CPU:1 [LOST 12 EVENTS]": what stood there was overwritten.
bool SaysLost(std::string_view line);

}  // namespace probed::kernel

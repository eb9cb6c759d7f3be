#pragma once
// The kernel's own words on what it refused: tracefs' error_log. Pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace probed::kernel {

struct LoggedError {
  std::string subsystem;  // "trace_kprobe", "event filter parse error"
  std::string message;
  std::string command;
  int caret = 0;  // 0-based column in `command`; may lie outside
};

// Oldest first, as the file has them; what is no entry is passed over.
std::vector<LoggedError> ParseErrorLog(std::string_view text);

// The newest entry about `command`.
std::optional<LoggedError> FindError(std::string_view text, std::string_view command);

// The newest entry about a command whose first word is `head`: the kernel shows a line whose
// arguments it has expanded as it came to be (%pd, trace_probe.c).
std::optional<LoggedError> FindErrorOf(std::string_view text, std::string_view head);

// The newest entry about the filter behind " if " in `command`, as one about the whole of it: the
// kernel logs a filter as a command of its own.
std::optional<LoggedError> FindFilterError(std::string_view text, std::string_view command);

// The word for a message of the kernel's, as its source calls it: BAD_PROBE_ADDR; KERNEL_REFUSED
// for those we have never heard of.
std::string CodeOfMessage(std::string_view message);

}  // namespace probed::kernel

#pragma once
// Whose an instance or a definition in tracefs is: the daemon's, by names that no other program
// uses. Pure.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace probed::kernel {

struct Owner {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat
  uint32_t serial = 0;       // of several instances of one process

  auto operator<=>(const Owner&) const = default;
};

std::string InstanceName(const Owner& owner);  // probed-PID-START[-SERIAL]
std::string GroupPrefix(const Owner& owner);   // probed_PID_START_[SERIAL_]

// Nothing for names that are not exactly as written above.
std::optional<Owner> ParseInstanceName(std::string_view name);
// `name` of a group or event that begins with a prefix and goes on with a name that no digit
// begins.
std::optional<Owner> OwnerOf(std::string_view name);
// `name` without the prefix of its owner, if it has one.
std::string_view WithoutPrefix(std::string_view name);

}  // namespace probed::kernel

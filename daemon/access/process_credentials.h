#pragma once
// What decides who may trace a process: its ids, capabilities and dumpability, from /proc.

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>

#include "base/result.h"

namespace probed::daemon {

struct ProcessCredentials {
  std::array<uid_t, 3> uids{};  // real, effective, saved
  std::array<gid_t, 3> gids{};
  uint64_t permitted_capabilities = 0;
  bool dumpable = false;
  // It is exiting, or a zombie: without memory nothing tells whether it is dumpable.
  bool ended = false;
  // It lives in a user name space below the daemon's; of the outermost such, who made it.
  std::optional<uid_t> namespace_owner;
  uint64_t start_ticks = 0;
};

// PROCESS_NOT_FOUND when there is no such process.
Result<ProcessCredentials> ReadCredentials(pid_t pid);

}  // namespace probed::daemon

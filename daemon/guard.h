#pragma once
// A second process that waits for the daemon's death and then gives back what it left in targets.
// It is this program again, with --guard: the same version knows the journal and the code in the
// targets, whatever has been installed meanwhile. Started anew by exec, because a fork of the
// daemon would share its memory and, later, its other threads' locks.

#include <sys/types.h>

#include <chrono>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::daemon {

class Guard {
 public:
  struct Ward {
    int journal;     // EngineOptions::patch_journal
    pid_t tracer;    // Engine::tracer()
    int tracer_end;  // Engine::TracerEnd()
    int canary;      // Canary::end()
  };
  // Ends by itself when the daemon does.
  static Result<Guard> Start(const Ward& ward);
  Guard(Guard&&) noexcept = default;
  Guard& operator=(Guard&&) noexcept = default;

  pid_t pid() const { return pid_; }
  // Readable when the guard has ended.
  int ended_fd() const { return pidfd_.get(); }
  // Once it has ended: frees its process id, and says how long it lived.
  std::chrono::nanoseconds Reap() const;

 private:
  Guard(pid_t pid, UniqueFd pidfd);
  pid_t pid_;
  UniqueFd pidfd_;
  uint64_t started_ns_;
};

// The main() of the guard.
inline constexpr const char* kGuardOption = "--guard";
int RunGuard(const char* tracer);

}  // namespace probed::daemon

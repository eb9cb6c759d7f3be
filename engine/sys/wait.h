#pragma once
// The only callers of waitpid(2). They wait for tracees and children of the calling thread alone
// (__WNOTHREAD), so nothing else in the process can swallow a stop, nor we its children.

#include <sys/types.h>

#include <cstdint>

namespace probed::sys {

enum class WaitMode : uint8_t { kBlock, kPoll };

struct Waited {
  enum class Outcome : uint8_t { kStatus, kNothing, kInterrupted, kNoTracees };
  Outcome outcome = Outcome::kNothing;
  pid_t tid = 0;
  int status = 0;
};

// Any thread (kAnyThread) or one. kBlock returns kInterrupted when a signal handler has run.
constexpr pid_t kAnyThread = -1;
Waited Wait(pid_t tid, WaitMode mode);

}  // namespace probed::sys

#pragma once
// The only callers of wait4(2) and waitid(2). They wait for tracees and children of the calling
// thread alone (__WNOTHREAD), so nothing else in the process can swallow a stop, nor we its
// children.
//
// A signal-delivery-stop is reported but not taken: it is reported again until the thread is
// resumed or TakeStop() is called. Taking a stop clears the exit code in which the kernel keeps the
// signal (kernel/exit.c, wait_task_stopped), so if the tracer died then, the signal would be
// dropped; a thread behind our int3 would go on in the middle of an instruction. What is left
// untaken is delivered when the tracer dies.

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

// So that a reported stop of the thread is not reported again.
void TakeStop(pid_t tid);

}  // namespace probed::sys

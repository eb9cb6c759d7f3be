#pragma once
// Who keeps what is needed to bring a thread back from a system call that it makes for us, in case
// that we die before it has returned. Tracer thread only.

#include <sys/types.h>
#include <sys/user.h>

#include <csignal>
#include <cstdint>

#include "engine/sys/signal.h"
#include "engine/tracee/syscall_place.h"

namespace probed::tracee {

// The signal mask meanwhile. No program has one like it. SIGTRAP is let in because the thread may
// run into an int3 with it if we die; one that is blocked ends the program (kernel/signal.c,
// force_sig_info_to_task).
inline constexpr uint64_t kMaskOfCalls =
    ~(sys::SignalBit(SIGTRAP) | sys::SignalBit(SIGKILL) | sys::SignalBit(SIGSTOP));

// What a thread had before.
struct CallUnderWay {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // with the pid, names the process for good
  pid_t tid = 0;
  SyscallPlace place;
  uint64_t signal_mask = 0;
  user_regs_struct regs{};
};

class CallRecorder {
 public:
  virtual ~CallRecorder() = default;
  // Before anything of the thread is changed; one call at a time.
  virtual void Begin(const CallUnderWay& call) = 0;
  // All of it is as it was.
  virtual void End() = 0;
};

}  // namespace probed::tracee

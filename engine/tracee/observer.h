#pragma once
// What the layer above is told of traced processes.

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include "engine/tracee/process.h"
#include "engine/tracee/resumption.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

enum class ChildChoice : uint8_t {
  kFollow,   // becomes a Process of its own (its memory is a copy, patches included)
  kRelease,  // detached; the observer has made its bytes clean
};

// Called on the tracer thread only; must not block. RemoteSyscall() and CodeArena may be used on
// the Stopped that is passed.
class Observer {
 public:
  virtual ~Observer() = default;

  // A SIGTRAP signal-stop: int3 (si_code SI_KERNEL), finished step (TRAP_TRACE/TRAP_BRKPT), or the
  // program's own. Return signal = SIGTRAP to hand it to the program. Its siginfo is read only when
  // it is asked for: most traps are told by their address.
  virtual Resumption OnTrap(Stopped& stopped) = 0;
  // Any other signal about to be delivered; default delivers. The observer may move an ip that is
  // inside our code back to the original instruction first.
  virtual Resumption OnSignal(Stopped& stopped, const siginfo_t& info) = 0;
  // A new thread, before its first instruction.
  virtual void OnThreadStart(Stopped& stopped) = 0;
  // A thread for which Stopped::AskForItsEnd() was called, or which one of those has made, is about
  // to end, with these registers. May come within any other wait, so it can only look.
  virtual void OnThreadEnding(Process&, pid_t, const user_regs_struct&) {}
  // Also when the thread was ended by another thread's exec.
  virtual void OnThreadExit(Process& process, pid_t tid) = 0;
  // `child` is stopped before its first instruction and shares no memory with the parent (fork).
  virtual ChildChoice OnFork(Process& parent, Process& child, Stopped& child_stopped) = 0;
  // A vfork child shares the parent's memory, patches and all; until exec or exit it is a thread of
  // `parent` (Thread::Role::kMemorySharer; OnThreadStart and OnThreadExit are called for it).
  // Return false to have it released at exec instead of followed.
  virtual bool OnVfork(Process& parent, pid_t child) = 0;
  // After a successful exec: one thread, new image, old memory gone. Nothing of it has run yet.
  virtual Resumption OnExec(Stopped& stopped) = 0;
  // After an exec of a followed vfork child, likewise, for a Process that is new to the observer.
  virtual ChildChoice OnChildExec(Process& parent, Process& child, Stopped& child_stopped) = 0;
  // A process that one of `parent` has made and nobody traces (CLONE_UNTRACED): its memory is a
  // copy, patches and all. Outside of all stops. False: it could not be dealt with now.
  virtual bool OnStray(Process&, pid_t) { return true; }
  // A syscall-stop, only when the thread was resumed with kSyscall. is_exit: the call has returned.
  virtual Resumption OnSyscall(Stopped& stopped, bool is_exit) = 0;
  // The process is about to be let go of although it may still run: take out of its memory what can
  // be taken without a stopped thread, and put nothing in any more.
  virtual void OnAbandon(Process&) {}
  // The whole process is gone (wait status). The Process dies after this call.
  virtual void OnExit(Process& process, int wait_status) = 0;
};

}  // namespace probed::tracee

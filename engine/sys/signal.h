#pragma once
// Signals to single threads, and the signal set-up of the tracer thread. signal(7), tkill(2).

#include <sys/types.h>

#include <csignal>
#include <cstdint>

#include "base/result.h"
#include "engine/sys/errno_value.h"

namespace probed::sys {

constexpr uint64_t SignalBit(int signal) {
  return uint64_t{1} << (signal - 1);
}

// Signals that do nothing by default: SIGCHLD, SIGCONT, SIGURG, SIGWINCH. signal(7).
constexpr uint64_t kIgnoredByDefault =
    SignalBit(SIGCHLD) | SignalBit(SIGCONT) | SignalBit(SIGURG) | SignalBit(SIGWINCH);

// A stop that looks like a SIGTRAP, but is none: a handler has been set up for a thread that was
// being stepped (kernel/signal.c, signal_delivered and ptrace_notify, which puts the exit code
// there).
inline bool IsHandlerNotice(const siginfo_t& info) {
  return info.si_signo == SIGTRAP && info.si_code == SIGTRAP;
}

Errno SendToThread(pid_t tid, int signal);
// A process, zombies included, whose id this is. Exact also while an exec passes the id on from one
// thread to another (kernel/signal.c, kill_pid_info).
bool ProcessExists(pid_t pid);
pid_t CurrentTid();

// Interrupts a blocking wait of a thread. Chosen because nothing uses it and its default is to be
// ignored.
constexpr int kWakeSignal = SIGURG;

// Blocks every signal but kWakeSignal in the calling thread and gives that one a handler that does
// nothing, without SA_RESTART. A process that ignores SIGCHLD would lose exit statuses (wait(2)),
// so an ignoring disposition is put back to the default; that one is told of exits only, not of the
// stops of tracees.
Status PrepareTracerThreadSignals();

}  // namespace probed::sys

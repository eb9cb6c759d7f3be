#pragma once
// Signals that are sent to a process, of which any thread may take one, and a thread of it that has
// nothing to do with them but seemed to. Tracer thread.

#include <csignal>

#include "engine/tracee/stopped.h"

namespace probed::probe {

// Not for this thread after all: sends it again as it was, to the process or to the thread as the
// first time. From another process it is then one of sigqueue(3), unless the first thread has it.
void SendAgain(tracee::Stopped& stopped, const siginfo_t& info);

// The thread has let the signal in for a moment. One that was sent to the process just then may
// have woken this thread alone (kernel/signal.c, complete_signal), and nobody who waits for it.
void LetOthersTake(tracee::Stopped& stopped, int signal);

}  // namespace probed::probe

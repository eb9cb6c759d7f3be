#pragma once
// System calls that return EINTR to a program merely because a tracer stopped it (signal(7), last
// section). They are made again, as if nothing had happened. The kernel does the same by itself for
// most calls; these it does not.
// Limit: a relative timeout starts over.

#include "engine/tracee/thread.h"

namespace probed::tracee {

// The thread is in an interrupt-stop, which no program should notice.
void UndoInterruption(Thread& thread);
// The thread is in a signal-stop. An ignored signal does not wake an untraced program, but it is
// reported to a tracer, and so ends the call.
void UndoInterruptionBySignal(Thread& thread, int signal);

}  // namespace probed::tracee

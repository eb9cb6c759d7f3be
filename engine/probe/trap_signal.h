#pragma once
// The program's own use of SIGTRAP. A trap in a thread that blocks or ignores the signal makes the
// kernel unblock it and put the default action in place (signal.c, force_sig_info_to_task). What
// the program had is remembered and put back: the mask and a handler after each trap, "ignore" only
// when no thread can have a trap pending, because setting it discards pending ones (sigaction(2)).
// What a program changes between our looks and before its next trap cannot be seen. Tracer thread.

#include <cstdint>

#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// At attach, before probes are installed, and after an exec.
void LookAtTrapAction(tracee::Stopped& stopped, ProcessState& state);
// Of a thread that has not run into a trap of ours yet.
void LookAtTrapMask(tracee::Thread& thread);

// After a trap of ours has been dealt with, the steps that it needs included.
void KeepTrapSignal(tracee::Stopped& stopped, ProcessState& state);

// Whether the program ignores the signal, whatever the kernel believes now.
bool IgnoresTraps(ProcessState& state);
// No thread of the process can have a trap pending.
void IgnoreTrapsAgain(tracee::Stopped& stopped, ProcessState& state);

}  // namespace probed::probe

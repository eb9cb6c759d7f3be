#pragma once
// The program's own use of SIGSEGV and SIGBUS, which loads of detours raise too: as trap_signal.h
// for SIGTRAP. Tracer thread.

#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Before sites are optimized.
void LookAtFaultActions(tracee::Stopped& stopped, ProcessState& state);
// After a fault of ours: where the program ignores the signal, or the thread blocks it, the kernel
// has put the default in place, which is undone.
void KeepFaultSignal(tracee::Stopped& stopped, ProcessState& state, int signal);

}  // namespace probed::probe

#pragma once
// What a forked child gets of its parent's probe state. Tracer thread only.

#include <sys/types.h>

#include <string>

#include "engine/probe/process_state.h"

namespace probed::probe {

// The child's memory is a copy, breakpoints and hijacked return addresses included, so its state
// is one too. `thread` is the child's only thread.
void InheritState(const ProcessState& parent, ProcessState& child, tracee::Thread& thread);

// What a copy of its memory holds of ours, as a journal would tell it: the process `child` is no
// target.
JournaledProcess DescribeCopy(const ProcessState& parent, pid_t child, uint64_t start_ticks);

// Path of the program, as /proc/PID/exe says; empty when it is gone.
std::string ExecutableOf(pid_t pid);

}  // namespace probed::probe

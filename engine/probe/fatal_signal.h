#pragma once
// A signal that is about to end a program with a core file, which a debugger walks later: there is
// no trampoline then, nor anybody who knows what it stood for. Tracer thread.

#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Whether the process is to be shown with its own return addresses: some may be hijacked, and
// nothing but the default action of the thread's signal awaits it. 0: none.
bool WillDumpCore(const tracee::Stopped& stopped, const ProcessState& state, int signal);

}  // namespace probed::probe

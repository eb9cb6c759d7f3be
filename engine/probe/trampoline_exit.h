#pragma once
// Threads that were stopped in a trampoline (engine/detour/trampoline.h), or have asked there.
// Tracer thread only.

#include <functional>

#include "engine/probe/process_state.h"
#include "engine/ring/layout.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Records a return, the registers being those behind it, for the return probes of `optimization`
// from number `first` on.
using RecordRest = std::function<void(tracee::Stopped&, ProcessState&, const Optimization&,
                                      const ring::ShadowFrame&, size_t first)>;

// What the trampoline has begun is finished from here: the thread has the program's registers, and
// its ip is where the trampoline would have sent it, perhaps another trampoline (a tail call).
// False: nobody of ours was called from there.
bool FinishReturn(tracee::Stopped& stopped, ProcessState& state, const Optimization& optimization,
                  const RecordRest& record);

}  // namespace probed::probe

#pragma once
// Takes everything of ours out of a process. Tracer thread only.

#include <functional>

#include "base/result.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

// Stops every thread, takes out breakpoints, hijacked returns and threads that are inside our code,
// reads every byte back, then unmaps our memory and lets the process go. `leaving` is called when
// the bytes are clean, before `state` dies.
Result<DetachReport> DetachClean(tracee::Tracer& tracer, HitHandler& hits, ProcessState& state,
                                 const std::function<void()>& leaving);

// The same for a forked child that nobody follows: one stopped thread, not detached here.
DetachReport CleanFork(tracee::Stopped& stopped, HitHandler& hits, ProcessState& state);

}  // namespace probed::probe

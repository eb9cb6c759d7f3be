#pragma once
// Takes everything of ours out of a process. Tracer thread only.

#include <functional>

#include "base/result.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

// Stops every thread, takes out breakpoints, hijacked returns and threads that are inside our code,
// reads every byte back, unmaps our memory and lets the process go, all in one stop. An exec
// meanwhile is survived. `leaving` is called when the bytes are clean, before `state` dies.
// After an error the process is traced as before, if need be because a byte of ours could not be
// taken out.
Result<DetachReport> DetachClean(tracee::Tracer& tracer, HitHandler& hits, ProcessState& state,
                                 const std::function<void()>& leaving);

// The same for a forked child that nobody follows: one stopped thread, not detached here.
Result<DetachReport> CleanFork(tracee::Stopped& stopped, HitHandler& hits, ProcessState& state);

// The last resort for a process that is let go of although it would not stop: breakpoints and
// hijacked return addresses are replaced in its memory while it runs. Our memory stays mapped.
void RestoreRunning(ProcessState& state);

}  // namespace probed::probe

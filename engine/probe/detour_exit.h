#pragma once
// Threads that were stopped in a detour and cannot stay there. Tracer thread only.

#include <sys/user.h>

#include <functional>
#include <optional>

#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Records the hit of a thread, whose registers are those at the site, for the probes of the site's
// detour from number `first` on.
// A block of a detour each; the one behind those of the entry probes hijacks the return.
using EvaluateRest = std::function<void(tracee::Stopped&, ProcessState&, Site&, size_t first)>;

// What the detour has begun is finished from here: afterwards the thread is among the displaced
// instructions with the program's registers, and every probe has recorded the hit. False: they
// cannot be had, the program has taken its stack away meanwhile.
bool FinishHit(tracee::Stopped& stopped, ProcessState& state, Site& site,
               const EvaluateRest& evaluate);

// The registers that a thread among the displaced instructions would have without them.
user_regs_struct WithoutDetour(tracee::Stopped& stopped, const Optimization& optimization);

}  // namespace probed::probe

#pragma once
// The routines that all detours of a process call (engine/detour/string_routines.h), in its memory,
// and threads that stand in one. Tracer thread only.

#include <sys/user.h>

#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "engine/probe/process_state.h"
#include "engine/sys/proc.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Puts them there, if they are not yet.
Status PlaceRoutines(tracee::Stopped& stopped, ProcessState& state);

bool InRoutines(const ProcessState& state, RemoteAddr ip);
// The thread's registers; of one in a routine, what they are at the call, in its detour or
// trampoline. Only to look at: the thread has not gone back there.
user_regs_struct RegsInDetour(tracee::Stopped& stopped, const ProcessState& state);
RemoteAddr IpInDetour(tracee::Stopped& stopped, const ProcessState& state);
// Of a thread that cannot be stopped; still in the routine if nobody knows who has called it.
RemoteAddr IpInDetour(const sys::SleepingPlace& place, const ProcessState& state);
// Where a load that faulted in a routine goes on.
std::optional<RemoteAddr> FixUpInRoutines(const ProcessState& state, RemoteAddr ip);

}  // namespace probed::probe

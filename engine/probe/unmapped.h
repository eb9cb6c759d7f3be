#pragma once
// Sites whose code is not there any more, because the program has unmapped it or put something else
// in its place. Nothing is written there: it is none of ours. Tracer thread only.

#include "engine/probe/address_space.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// `space`: as it is now.
void ForgetUnmapped(ProcessState& state, const AddressSpace& space);
// The same for what is mapped at this moment.
void ForgetUnmapped(ProcessState& state);

// Memory was moved, and what is written in it with it: from there on it is the program's own again.
void RestoreMoved(tracee::Stopped& stopped, ProcessState& state, RemoteAddr start, RemoteAddr end,
                  RemoteAddr to);

}  // namespace probed::probe

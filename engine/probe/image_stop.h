#pragma once
// Work in the stop of one thread that means nothing to another program than the one it was planned
// for. Tracer thread only, outside observer callbacks.

#include <cstdint>

#include "engine/probe/process_state.h"
#include "engine/tracee/code_reservation.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

// The result is called while `tracer` and `state` exist; after an error, `state` may not any more.
// PROGRAM_REPLACED: the process executes another program than `image`, ProcessState::image.
tracee::InOneStop StopOfImage(tracee::Tracer& tracer, ProcessState& state, uint64_t image);

}  // namespace probed::probe

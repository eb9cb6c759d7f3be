#pragma once
// Returns that detours have hijacked (engine/detour/trampoline.h), as the tracer sees them. Their
// frames belong to the threads while they run in detours and trampolines only; before anything else
// is done with a return, the daemon takes its frame over: from then on it is a PendingReturn like
// any other, with the daemon's trampoline in its slot. Frames are found by slot, so nobody has to
// know in which of the two lists one is. Tracer thread only.
//
// A frame is the program's word for what it is. What is believed of it is which function it is of
// (by its trampoline, which must be one of ours); addresses only ever name the program's own
// memory.

#include <cstdint>
#include <optional>

#include "engine/probe/process_state.h"
#include "engine/ring/layout.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Gives the thread a shadow stack if its fs base is its own; otherwise its hits ask the daemon.
void KnowThread(tracee::Stopped& stopped, ProcessState& state);
// The same for one that begins; one that has another's base until it sets its own keeps both from
// having a shadow stack. Before anybody takes it for the owner of its base.
void MeetThread(tracee::Stopped& stopped, ProcessState& state);
// It has ended: its frames are those of its state.
void ForgetThread(ProcessState& state, pid_t tid);

// The thread is stopped, outside of detours and trampolines.
void TakeOverFrames(tracee::Stopped& stopped, ProcessState& state);
// All threads are.
void TakeOverAllFrames(ProcessState& state);
// What the stacks of other threads, which may run, say about start <= slot < end; for their owners.
void TakeOverForeignFrames(tracee::Stopped& stopped, ProcessState& state, uint64_t start,
                           uint64_t end);
// A child's memory is a copy of its parent's: its frames become inherited ones of `child`.
void InheritFrames(tracee::Stopped& child, ProcessState& state, const ProcessState& parent);

// The innermost frame that returns through `slot`, which is taken off: this thread's or, for a
// coroutine, another's.
struct TakenFrame {
  ring::ShadowFrame frame;
  bool foreign = false;
};
std::optional<TakenFrame> TakeFrame(tracee::Stopped& stopped, ProcessState& state, uint64_t slot);

}  // namespace probed::probe

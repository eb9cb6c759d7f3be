#pragma once
// What a dead daemon has left in a process, made into what a living one would have there, so that
// it can be taken out in the same way. Nothing is believed that the memory of the process does not
// bear out: it may have executed another program since. Tracer thread, but for the first two.

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/probe/patch_journal.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// At once, while the process runs and before anybody traces it: breakpoints, a byte each. Returns
// how many. What needs more care is left as it is.
Result<uint32_t> RestoreBreakpoints(const JournaledProcess& left);
// Living processes that are not in the journal and have been forked off one that is: by a daemon
// that died before it had heard of them, or later.
std::vector<JournaledProcess> FindForks(std::span<const JournaledProcess> known);

// Sites, hijacked returns and the trap handler; the process may run.
void AdoptLeftovers(ProcessState& state, const JournaledProcess& left);
// Jumps become breakpoints, or what the program had there. Every thread is stopped; those in a
// detour leave it by themselves, because nothing is armed in it any more.
Status UndoJumps(std::span<tracee::Stopped* const> threads, const ProcessState& state,
                 const JournaledProcess& left);
// Back from the system call that it was making for a daemon which then died.
void EndCall(tracee::Stopped& stopped, const tracee::CallUnderWay& call);
// A signal that was delivered while nobody traced may have interrupted a thread that was just about
// to return through a slot of ours: its handler then returns to the caller.
void CorrectInterrupted(tracee::Stopped& stopped, const ProcessState& state);

}  // namespace probed::probe

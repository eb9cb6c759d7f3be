#pragma once
// The program's own use of SIGTRAP. A trap in a thread that blocks or ignores the signal makes the
// kernel unblock it and put the default action in place (signal.c, force_sig_info_to_task). What
// the program had is remembered and put back: the mask and a handler after each trap, "ignore" only
// when no thread can have a trap pending, because setting it discards pending ones (sigaction(2)).
// What a program changes between our looks and before its next trap cannot be seen, but for a full
// mask, and for what our handler's end tells: those are put back when it matters. Tracer thread.

#include <cstdint>

#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Puts the rescue handler (rescue.h) in the place of the default action, or of the handler that
// Go's runtime has, and puts the program's back. The program may replace either at any time.
void InstallRescue(tracee::Stopped& stopped, ProcessState& state);
void RemoveRescue(tracee::Stopped& stopped, ProcessState& state);
// The program is about to get a SIGTRAP of its own: its handler, put in place since we looked, it
// may be, must run, and blocks what it blocks. Some later hit calls the second to be protected
// again.
void YieldToProgram(tracee::Stopped& stopped, ProcessState& state);
void KeepRescue(tracee::Stopped& stopped, ProcessState& state);

// At attach, before probes are installed, and after an exec: the program's own action. Whether the
// program had to make a system call for it.
bool LookAtTrapAction(tracee::Stopped& stopped, ProcessState& state);
// Of a thread that has not run into a trap of ours yet.
void LookAtTrapMask(tracee::Thread& thread);

// Whether a trap of this thread may have changed what the program can see of its signals.
bool MayLoseTrapSignal(tracee::Thread& thread, const ProcessState& state);
// A thread that has come to block all signals since we looked, as libraries do for a moment, does
// not block SIGTRAP any more. A system call.
bool HasLostBlock(tracee::Stopped& stopped);
// Then: after a trap of ours has been dealt with, the steps that it needs included.
void KeepTrapSignal(tracee::Stopped& stopped, ProcessState& state);

// Blocks the signal again in a thread that blocks all others. C libraries do so around clone and
// the like, out of our sight, and a mask with every other classic signal in it most likely had
// SIGTRAP too. For when somebody is about to look: a SIGTRAP was sent, or a child or a new image
// inherits the mask, or we leave. False: it is not such a thread.
bool RestoreFullMask(tracee::Stopped& stopped);

// The same in a thread that has taken one which was sent to the process, and would end the program
// by it, where a trap has found the signal blocked and nobody knows of which thread: one that came
// to block it since we looked. Only if somebody waits for the signal (sys/awaited_signal.h) or,
// this thread maybe, runs and may do so soon: then it is kept. Not where the program handles the
// signal.
bool RestoreUnseenBlock(tracee::Stopped& stopped, ProcessState& state);
// Else: whether it is to be looked at once more. For a while only.
bool MayBeAwaited(tracee::Stopped& stopped, ProcessState& state);

// A hit of any thread has been dealt with. A signal that was kept and for which nobody has come to
// wait is this thread's: it ends the program, as it would have in another.
void DeliverKeptTrap(tracee::Stopped& stopped, ProcessState& state);

// Either, in a thread that we leave. Nobody tells which of them have lost an unseen block; those
// that otherwise block what one does of which it is known by now are taken for such.
void RestoreBlockOfLeft(tracee::Stopped& stopped, const ProcessState& state);
// Whether the thread, which has been sent one of its own, blocks it as far as the program knows, so
// that a trap must have let it in.
bool HasLetIn(tracee::Stopped& stopped, ProcessState& state);

// Whether the program ignores the signal, whatever the kernel believes now.
bool IgnoresTraps(ProcessState& state);
// No thread of the process can have a trap pending.
void IgnoreTrapsAgain(tracee::Stopped& stopped, ProcessState& state);

}  // namespace probed::probe

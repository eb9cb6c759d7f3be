#pragma once
// Calls that the program has left without a return: an exception or longjmp(3) went past them, or
// their thread has ended. Counted as such is only what is certain. Tracer thread only.
//
// That a frame is dead is found when something else stands in its slot, when an unwinder has gone
// past it, or when it lies below the stack pointer of its thread, which is looked at when the
// thread ends, when the probe is disabled, and at detach.

#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/probe/address_space.h"
#include "engine/probe/return_stack.h"

namespace probed::tracee {
class Thread;
}  // namespace probed::tracee

namespace probed::probe {

class ProcessState;

// The thread's own stack, and how far it is in use. Stacks of coroutines may lie anywhere, so this
// is only known where no other can be: the program's first, and one with the thread's own control
// block at its end and a guard at its begin, as C libraries make them.
struct OwnStack {
  uint64_t start = 0, sp = 0, end = 0;

  static std::optional<OwnStack> Find(const AddressSpace& space, const user_regs_struct& regs);
  bool Contains(uint64_t slot) const { return slot >= start && slot < end; }
  bool WasLeft(uint64_t slot) const { return slot >= start && slot < sp; }
};

// Of a thread that ends.
struct LastStack {
  OwnStack stack;
  bool by_itself = false;  // by exit(2): what it was called in ends with it

  bool WasLeft(uint64_t slot) const {
    return by_itself ? stack.Contains(slot) : stack.WasLeft(slot);
  }
};

// The thread is about to end: what will be asked about it afterwards.
void NoteLastStack(const ProcessState& state, pid_t tid, const user_regs_struct& regs);

// Adds them to the counters of their probes, and tells. They are missed with the end of this.
void CountUnwound(ProcessState& state, pid_t tid, std::vector<PendingReturn> frames);

// Takes off, and counts, what the thread has left, as far as that can be seen: more of it where the
// thread is stopped, or ThreadState::last_stack is known.
void TakeLeft(ProcessState& state, tracee::Thread& thread);

}  // namespace probed::probe

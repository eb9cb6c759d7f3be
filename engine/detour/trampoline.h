#pragma once
// The code that a hijacked function returns to: it records the return, takes the frame off the
// thread's shadow stack (ring/layout.h) and goes on at the caller. One for each function with
// return probes. Promises what a detour does (detour.h); rax, rdx, vector and x87 results pass
// untouched.
//
// How it works together with the daemon:
//   entry    The detour of the function (Hijack) pushes a frame and then, with one store, puts the
//            trampoline's address into the slot. Not pushed: the thread has no shadow stack or no
//            room in it (`missed`), the daemon is dead, or every return probe of the function is
//            off.
//   return   EmitFind looks for the frame from the top by its slot, so frames that longjmp or an
//            exception has left behind do not matter. It first puts `next` back into the slot.
//            A tail call chains: `next` is then the trampoline of the frame below, which records in
//            its turn; the address in the payload is `caller` for all of them.
//   foreign  A coroutine that returns in another thread than it was called in: int3 at `foreign`
//            with the program's registers, the slot being the word below the stack pointer. The
//            daemon looks in the other shadow stacks.
//   unwind   The daemon reads frames as they lie there, writes `caller` to their slots to show an
//            unwinder the truth, and `trampoline` to hijack those again that are still there.
//   removal  Frames whose trampoline is to go: write `next` to the slot and remove the frame, every
//            thread being stopped outside of detours.
// A frame that was written but whose slot was not (a thread taken out between the two) is dead by
// the rule in layout.h, and so does no harm.

#include "engine/detour/detour.h"

namespace probed::detour {

struct TrampolineRequest {
  uint64_t function = 0;
  std::span<const DetourProbe> probes;  // newest first
  SharedMemory memory;
  bool has_rdpid = HasRdpid();
};

struct Trampoline {
  // Position-independent. Locate and Unwind work with it: kDisplaced is the jump to the word below
  // the stack pointer, and Unwind's `site` is the trampoline itself, as if it had just been
  // returned to.
  Detour detour;
  uint32_t found = 0;  // from here on the slot holds ShadowFrame::next
  // From here until `detour.displaced` the frame is being taken off, and every probe is done: let
  // the thread run on, it is through in a moment and cannot fault.
  uint32_t pop = 0;
  uint32_t foreign = 0;
};

// DETOUR_UNSUPPORTED as Assemble.
Result<Trampoline> AssembleTrampoline(const TrampolineRequest& request);

}  // namespace probed::detour

#pragma once
// The code that a hijacked function returns to: it records the return, takes the frame off the
// thread's shadow stack (ring/layout.h) and goes on at the caller. One for each function with
// return probes. Promises what a detour does (detour.h); rax, rdx, vector and x87 results pass
// untouched.
//
// How it works together with the daemon:
//   entry    The detour of the function (Hijack) pushes a frame and then, with one store, puts the
//            trampoline's address into the slot. Where it cannot (no shadow stack for this thread,
//            no room in it, a chain to a frame of the daemon's) it asks the daemon, which hijacks
//            the return itself. Nothing is pushed when the daemon is dead, or every return probe
//            of the function is off.
//   return   EmitFind looks for the frame from the top by its slot, so frames that longjmp or an
//            exception has left behind do not matter. It first puts `next` back into the slot.
//            A tail call chains: `next` is then the trampoline of the frame below, which records in
//            its turn; the address in the payload is `caller` for all of them.
//   foreign  A coroutine that returns in another thread than it was called in: asks the daemon,
//            which looks in the other shadow stacks.
//   others   The daemon takes frames over into its own list, with its own trampoline in the slots,
//            whenever somebody is about to look at the stack, or the code is to go.
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

// Position-independent. Locate and Unwind work with it: kDisplaced is the jump to the word below
// the stack pointer, and Unwind's `site` is the trampoline itself, as if it had just been returned
// to. DETOUR_UNSUPPORTED as Assemble.
Result<Detour> AssembleTrampoline(const TrampolineRequest& request);

}  // namespace probed::detour

#pragma once
// Machine code that hijacks a return address and finds the frame again when the function returns
// (ring::ShadowStack). Changes rax, rcx, rdx, rsi, r8 and r9.

#include "engine/detour/assembler.h"
#include "engine/detour/hit_place.h"

namespace probed::detour {

class ShadowCode {
 public:
  ShadowCode(Assembler& assembler, const SharedMemory& memory) : a_(assembler), memory_(memory) {}

  // At a function's entry. Counts as missed, in the first probe, what cannot be hijacked.
  ProbeBlock EmitHijack(const Hijack& hijack, uint64_t site);
  // In a trampoline: leaves the frame and its stack in the detour's Frame, and puts the address to
  // go on at back into the slot. Jumps to `foreign` when this thread has no such frame.
  void EmitFind(Label& foreign);
  // Takes that frame off.
  void EmitPop();

 private:
  void FindStack(Label& none);
  void FrameAddress(const Xbyak::Reg64& to);
  void Reap();
  void Push(const Hijack& hijack, uint64_t site);
  void CountMissed(const Xbyak::Reg64& probe);

  Assembler& a_;
  const SharedMemory& memory_;
};

}  // namespace probed::detour

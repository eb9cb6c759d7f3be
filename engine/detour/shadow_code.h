#pragma once
// Machine code that hijacks a return address and finds the frame again when the function returns
// (ring::ShadowStack). Where it cannot, it asks the daemon (Detour::ask). Changes rax, rcx, rdx,
// rsi, r8 and r9.

#include "engine/detour/assembler.h"
#include "engine/detour/hit_place.h"

namespace probed::detour {

class ShadowCode {
 public:
  ShadowCode(Assembler& assembler, Detour& detour)
      : a_(assembler), detour_(detour), memory_(detour.memory) {}

  // At a function's entry.
  void EmitHijack(const Hijack& hijack, uint64_t site);
  // In a trampoline: leaves the frame and its stack in the detour's Frame, and puts the address to
  // go on at back into the slot.
  void EmitFind();
  // Takes that frame off.
  void EmitPop();

 private:
  void FindStack();
  void FrameAddress(const Xbyak::Reg64& to);
  void Reap();
  void Push(const Hijack& hijack, uint64_t site);
  void CountUnwound(const Xbyak::Reg64& probe);

  Assembler& a_;
  Detour& detour_;
  const SharedMemory& memory_;
  Label ask_;
};

}  // namespace probed::detour

#pragma once
// What surrounds the body of every detour: registers and flags saved and restored.

#include <functional>

#include "base/result.h"
#include "engine/detour/assembler.h"

namespace probed::detour {

// Emits prologue, `body`, epilogue and `tail`; called again with a larger buffer when the code does
// not fit. `body` may change the registers of Frame::slots() and jumps nowhere; `tail` runs with
// the program's registers.
struct ShellParts {
  std::function<void(Assembler&, Detour&)> body;
  std::function<void(Assembler&, Detour&)> tail;
};
Result<Detour> EmitShell(const Frame& frame, const SharedMemory& memory, const ShellParts& parts);

// Jumps to `disarmed` when the daemon is gone.
void TestArmed(Assembler& assembler, const SharedMemory& memory, Label& disarmed);

}  // namespace probed::detour

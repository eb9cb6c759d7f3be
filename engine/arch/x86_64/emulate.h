#pragma once
// Carries out simple instructions on a register file and memory. Pure: memory through MemoryBus.

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

class MemoryBus {
 public:
  virtual ~MemoryBus() = default;
  virtual bool Load(uint64_t address, std::span<std::byte> out) = 0;
  virtual bool Store(uint64_t address, std::span<const std::byte> bytes) = 0;
};

enum class EmulationResult : uint8_t {
  kDone,      // registers (rip included) and memory are as after the instruction
  kDeclined,  // not emulated, or a memory access failed: nothing was changed; use the copy instead
};

// `regs.rip` must be the original address of `instruction`.
EmulationResult Emulate(const Instruction& instruction, user_regs_struct& regs, MemoryBus& memory);

}  // namespace probed::arch

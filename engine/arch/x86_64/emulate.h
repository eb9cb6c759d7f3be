#pragma once
// Carries out simple instructions on a register file and memory. Pure: memory through MemoryBus.

#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

// The memory of the thread that runs the instruction. It must refuse what the thread itself could
// not do: process_vm_writev does, /proc/PID/mem writes through read-only pages. A Store that fails
// must not leave its first half behind.
class MemoryBus {
 public:
  virtual ~MemoryBus() = default;
  virtual bool Load(uint64_t address, std::span<std::byte> out) = 0;
  virtual bool Store(uint64_t address, std::span<const std::byte> bytes) = 0;
};

enum class EmulationResult : uint8_t {
  kDone,  // registers (rip included) and memory are as after the instruction
  // Not emulated, a memory access failed, the target is not canonical, or the program has set TF or
  // AC: nothing was changed; use the copy instead, which faults or traps as the original would.
  kDeclined,
};

// `regs.rip` must be the original address of `instruction`.
EmulationResult Emulate(const Instruction& instruction, user_regs_struct& regs, MemoryBus& memory);

}  // namespace probed::arch

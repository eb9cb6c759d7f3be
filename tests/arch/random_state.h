#pragma once
// Random but useful machine states: memory operands mostly point at pages that exist, sometimes at
// their edges, at read-only pages, at holes and at addresses that are not canonical.

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tests/arch/machine_state.h"

namespace probed::arch {

class RandomState {
 public:
  // `initial`: a state of the puppet, for what must not be random; `base`: its layout's start.
  RandomState(const MachineState& initial, uint64_t base, uint64_t seed);

  // A state to start `code` from. Rewrites the distances in `code` that name fixed places, so that
  // they name places of the layout.
  MachineState Make(std::vector<uint8_t>& code);
  // The same for several instructions one behind the other. A branch leads past all of them.
  MachineState Make(std::span<std::vector<uint8_t>> run);

 private:
  uint64_t Below(uint64_t limit);
  bool Chance(int percent);
  uint64_t DataAddress();
  uint64_t CodeAddress();
  uint64_t StackPointer();
  uint64_t Value();
  void FillRegisters(user_regs_struct& regs);
  void FillVectors(std::vector<uint8_t>& xstate);
  void FillX87(std::vector<uint8_t>& xstate);
  void FillMemory(std::vector<uint8_t>& memory);
  // `end`: the address behind the instruction.
  void AimMemoryOperand(std::vector<uint8_t>& code, uint64_t end, MachineState& state);
  void AimRelativeBranch(std::vector<uint8_t>& code, uint64_t end);
  void Restrain(const std::vector<uint8_t>& code, MachineState& state);

  const MachineState& initial_;
  uint64_t base_;
  std::mt19937_64 random_;
  std::vector<uint8_t> memory_;
};

}  // namespace probed::arch

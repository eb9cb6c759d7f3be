#pragma once
// Runs code of this process from a chosen state of every general-purpose register, the flags and
// the stack, and tells the state afterwards. One thread at a time.

#include <array>
#include <cstdint>

#include "engine/lang/registers.h"

namespace probed::detour::testing {

struct Registers {
  std::array<uint64_t, 16> general{};  // in the order of lang::Reg
  uint64_t flags = 0x202;

  uint64_t& operator[](lang::Reg reg) { return general[static_cast<size_t>(reg)]; }
  uint64_t operator[](lang::Reg reg) const { return general[static_cast<size_t>(reg)]; }
  bool operator==(const Registers&) const = default;
};

// Calls `code` on the stack that %sp names (its return address is put there) until it returns.
void RunAt(Registers& registers, uint64_t code);

}  // namespace probed::detour::testing

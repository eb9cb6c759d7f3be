#pragma once
// Is an offset the start of an instruction? Pure.

#include <cstdint>
#include <optional>
#include <span>

namespace probed::arch {

struct Boundary {
  bool is_start = false;
  // The instruction that contains the offset; equal to the offset when is_start.
  uint64_t instruction_start = 0;
  uint8_t instruction_length = 0;
};

// Decodes `function` from its first byte up to `offset`. Nothing when the offset is outside, or
// when bytes on the way are no instruction (data in the code), so that the answer is unknown.
std::optional<Boundary> FindBoundary(std::span<const uint8_t> function, uint64_t offset);

// True only when FindBoundary is sure.
bool IsInstructionBoundary(std::span<const uint8_t> function, uint64_t offset);

}  // namespace probed::arch

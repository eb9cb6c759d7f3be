#include "engine/arch/x86_64/boundary.h"

#include "engine/arch/x86_64/disassembler.h"

namespace probed::arch {

std::optional<Boundary> FindBoundary(std::span<const uint8_t> function, uint64_t offset) {
  uint64_t start = 0;
  while (offset < function.size()) {
    uint8_t length = InstructionLength(function.subspan(start));
    if (length == 0) return std::nullopt;
    if (offset < start + length) {
      return Boundary{
          .is_start = offset == start, .instruction_start = start, .instruction_length = length};
    }
    start += length;
  }
  return std::nullopt;
}

bool IsInstructionBoundary(std::span<const uint8_t> function, uint64_t offset) {
  std::optional<Boundary> boundary = FindBoundary(function, offset);
  return boundary.has_value() && boundary->is_start;
}

}  // namespace probed::arch

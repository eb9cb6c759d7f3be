#pragma once
// Out-of-line copies. A copy is position-fixed, read-only and shared by all threads: rip-relative
// displacements are rewritten for the copy's place, so no scratch register is borrowed.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

inline constexpr size_t kMaxCopySize = 32;  // bytes to reserve for any copy

struct OutOfLineCopy {
  std::vector<uint8_t> code;
  uint8_t instruction_length = 0;  // length of the (possibly rewritten) instruction in the copy
  bool boosted = false;            // ends in a jump to original + length
};

// Places `instruction` (from `original`) at `copy_address`. DISPLACEMENT_OUT_OF_RANGE when its
// rip-relative operand cannot be reached from there.
Result<OutOfLineCopy> BuildCopy(const Instruction& instruction, uint64_t original,
                                uint64_t copy_address);

}  // namespace probed::arch

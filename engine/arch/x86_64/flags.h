#pragma once
// Status flags of the few arithmetic instructions that are emulated (SDM vol. 1, 3.4.3.1).

#include <cstdint>

#include "engine/arch/x86_64/operation.h"

namespace probed::arch {

inline constexpr uint64_t kCarryFlag = 1 << 0;
inline constexpr uint64_t kParityFlag = 1 << 2;
inline constexpr uint64_t kAdjustFlag = 1 << 4;
inline constexpr uint64_t kZeroFlag = 1 << 6;
inline constexpr uint64_t kSignFlag = 1 << 7;
inline constexpr uint64_t kOverflowFlag = 1 << 11;
inline constexpr uint64_t kArithmeticFlags =
    kCarryFlag | kParityFlag | kAdjustFlag | kZeroFlag | kSignFlag | kOverflowFlag;

struct ArithmeticResult {
  uint64_t value = 0;
  uint64_t flags = 0;  // within kArithmeticFlags
};

// `kind` from kAdd to kTest; `width` 4 or 8 bytes.
ArithmeticResult ComputeArithmetic(OperationKind kind, uint64_t left, uint64_t right,
                                   uint8_t width);

// `condition`: the low four bits of a jcc opcode.
bool ConditionHolds(uint8_t condition, uint64_t flags);

}  // namespace probed::arch

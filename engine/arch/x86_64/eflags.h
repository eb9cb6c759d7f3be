#pragma once
// Bits of the flags register: Intel SDM volume 1, 3.4.3.

#include <cstdint>

namespace probed::arch {

inline constexpr uint64_t kTrapFlag = 1 << 8;
inline constexpr uint64_t kAlignmentCheck = 1 << 18;

}  // namespace probed::arch

#pragma once
// Deadlines as the waits of this folder take them. Any thread.

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace probed::tracee {

// On the clock of MonotonicNow(), in nanoseconds; never before now.
inline uint64_t DeadlineAfter(std::chrono::milliseconds duration) {
  auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(duration);
  return MonotonicNow() + static_cast<uint64_t>(std::max<int64_t>(nanoseconds.count(), 0));
}

}  // namespace probed::tracee

#pragma once
// Both clocks of an event, read together.

#include <cstdint>

namespace probed {

struct Timestamps {
  uint64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  int64_t wall_ns = 0;        // CLOCK_REALTIME, nanoseconds since 1970
};

Timestamps ReadClocks();
uint64_t MonotonicNow();  // nanoseconds

}  // namespace probed

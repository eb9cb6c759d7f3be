#include "base/clock.h"

#include <ctime>

namespace probed {
namespace {

int64_t Read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

Timestamps ReadClocks() {
  return {.monotonic_ns = MonotonicNow(), .wall_ns = Read(CLOCK_REALTIME)};
}

uint64_t MonotonicNow() {
  return static_cast<uint64_t>(Read(CLOCK_MONOTONIC));
}

}  // namespace probed

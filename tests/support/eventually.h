#pragma once
// Waiting for what another process or thread does, with nothing to wait on.

#include <sched.h>

#include <chrono>

namespace probed {

// Whether `condition` has become true; it gets 20 seconds, which nothing here takes.
template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::sched_yield();
  }
  return true;
}

}  // namespace probed

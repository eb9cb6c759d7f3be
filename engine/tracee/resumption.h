#pragma once
// How a thread goes on after a stop that was shown to the observer.

#include <cstdint>

namespace probed::tracee {

struct Resumption {
  enum class How : uint8_t { kContinue, kStep, kSyscall };
  How how = How::kContinue;
  int signal = 0;  // delivered on resume; 0 = swallowed
};

}  // namespace probed::tracee

#pragma once
// A deadline for a blocking system call: kWakeSignal to one thread at a time, and again every
// millisecond until disarmed, so that a signal that comes just before the call is not missed.
// timer_create(2) SIGEV_THREAD_ID.

#include <sys/types.h>
#include <time.h>

#include <cstdint>

#include "base/result.h"

namespace probed::sys {

class WakeTimer {
 public:
  WakeTimer() = default;
  WakeTimer(const WakeTimer&) = delete;
  WakeTimer& operator=(const WakeTimer&) = delete;
  ~WakeTimer();

  Status Create(pid_t tid);
  void Arm(uint64_t monotonic_ns);
  void Disarm();

 private:
  bool created_ = false;
  timer_t timer_{};
};

}  // namespace probed::sys

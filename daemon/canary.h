#pragma once
// A thread that does nothing but sleep. Of a killed process each thread dies when the scheduler
// lets it run, and that of the tracer, with its targets' threads in front of it, may be among the
// last. This one has the highest priority that it can get, so the guard hears of the death by it at
// once.

#include <stop_token>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::daemon {

class Canary {
 public:
  static Result<Canary> Start();
  Canary(Canary&&) noexcept = default;
  Canary& operator=(Canary&&) noexcept = default;

  // Readable when it has ended.
  int end() const { return end_.get(); }

 private:
  Canary(std::jthread thread, UniqueFd end);
  UniqueFd end_;
  std::jthread thread_;
};

// Refused without privileges (RLIMIT_NICE). `tid`: 0, the calling thread.
void Hurry(pid_t tid);

}  // namespace probed::daemon

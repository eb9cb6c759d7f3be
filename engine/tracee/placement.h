#pragma once
// How the tracer thread waits for the next stop while stops come thick and fast. A stop costs two
// context switches, and which way is cheapest depends on the machine and its load: on idle cores
// polling wins, on one shared core it only takes the target's time. WaitTrial finds out; this does
// what it says. Tracer thread only, but for Describe().

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "engine/sys/affinity.h"
#include "engine/tracee/wait_trial.h"

namespace probed::tracee {

class Placement {
 public:
  void OnStop(pid_t tid);
  // How long to poll before sleeping.
  std::chrono::nanoseconds spin() const;
  // "sleep", "spin 50us" or "follow", and why; "(measuring)" until the first choice. Any thread.
  std::string Describe() const;

 private:
  void Follow(pid_t tid);
  void StopFollowing();
  std::string Explain() const;

  WaitTrial trial_;
  std::optional<sys::ThreadAffinity> affinity_;  // from before the tracer was held
  int cpu_ = -1;                                 // that the tracer is held on
  uint64_t stops_ = 0;
  mutable std::mutex mutex_;
  std::string description_ = "sleep (measuring)";  // guarded by mutex_
};

}  // namespace probed::tracee

#pragma once
// How the tracer thread waits for the next stop while stops come thick and fast. A stop costs two
// context switches, and which way is cheapest depends on the machine and its load: on idle cores
// polling wins, on one shared core it only takes the target's time. So each way is tried for some
// hundred stops and the fastest is kept for a while. Tracer thread only, but for Describe().

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/sys/affinity.h"

namespace probed::tracee {

enum class WaitWay : uint8_t {
  kSleep,   // in waitpid
  kSpin,    // poll first
  kFollow,  // sleep, on the CPU that the target's thread ran on
};
constexpr size_t kWaitWays = 3;

// Decides from times alone. Pure.
class WaitTrial {
 public:
  WaitWay way() const { return way_; }
  bool settled() const { return settled_; }
  // A stop came in at `now_ns`.
  void Count(uint64_t now_ns);

 private:
  void EndTrial(uint64_t elapsed_ns);

  WaitWay way_ = WaitWay::kSleep;
  bool settled_ = false;
  uint64_t last_ns_ = 0, start_ns_ = 0;
  uint64_t stops_ = 0;
  std::array<uint64_t, kWaitWays> elapsed_{};
};

class Placement {
 public:
  // On the tracer thread.
  void Start();
  void OnStop(pid_t tid);
  std::chrono::nanoseconds spin() const;
  // "sleep", "spin 50us", "follow"; with "measuring" until the first choice. Any thread.
  std::string Describe() const;

 private:
  void Follow(pid_t tid);

  WaitTrial trial_;
  std::atomic<WaitWay> way_ = WaitWay::kSleep;
  std::atomic<bool> settled_ = false;
  std::optional<sys::ThreadAffinity> affinity_;
  int cpu_ = -1;
  uint64_t stops_ = 0;
};

}  // namespace probed::tracee

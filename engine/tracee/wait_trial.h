#pragma once
// Decides from times alone which way of waiting for the next stop is the cheapest. Each way is
// tried for a few short rounds and judged by the median of its rounds, so that one disturbance from
// outside decides nothing. Pure; one thread.

#include <array>
#include <cstddef>
#include <cstdint>

namespace probed::tracee {

enum class WaitWay : uint8_t {
  kSleep,   // in waitpid
  kSpin,    // poll first
  kFollow,  // sleep, on the CPU that the target's thread ran on
};
constexpr size_t kWaitWays = 3;

class WaitTrial {
 public:
  WaitWay way() const { return way_; }
  bool settled() const { return settled_; }
  // A stop came in at `now_ns`.
  void Count(uint64_t now_ns);
  // The last stop came long after the one before: the stops are rare now, or the tracer starves.
  bool paused() const { return paused_; }

  // Whether a tracer that sleeps shares a CPU with the thread that stops. Then no CPU has to be
  // woken and nothing is faster, while trying other ways would drive the two apart.
  bool asks_for_core() const;
  void NoteCore(bool is_shared);
  bool shares_core() const { return shares_core_; }

  // Median of the last trial in nanoseconds a stop; 0: not tried.
  uint64_t cost(WaitWay way) const { return costs_[static_cast<size_t>(way)]; }

 private:
  static constexpr size_t kRounds = 3;

  void EndRound(uint64_t cost);
  void EndWindow(uint64_t cost);
  void NextWay();
  void Use(WaitWay way);
  void Settle(WaitWay way);
  void StartOver();
  WaitWay Fastest() const;

  WaitWay way_ = WaitWay::kSleep;
  bool settled_ = false;
  bool paused_ = false;

  bool is_first_ = true;  // the next gap is not this way's
  uint64_t last_ns_ = 0;
  uint64_t elapsed_ns_ = 0, stops_ = 0;  // of this round or window

  size_t round_ = 0;
  std::array<std::array<uint64_t, kRounds>, kWaitWays> rounds_{};
  std::array<uint64_t, kWaitWays> costs_{};
  uint64_t cores_shared_ = 0, cores_apart_ = 0;
  bool shares_core_ = false;

  uint64_t settled_cost_ = 0;  // of the first window after the trial
  uint64_t settled_stops_ = 0;
  uint64_t worse_windows_ = 0;
  uint64_t interval_ = 0;  // stops until the next trial
  WaitWay chosen_ = WaitWay::kSleep;
};

}  // namespace probed::tracee

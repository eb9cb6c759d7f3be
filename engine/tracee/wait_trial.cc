#include "engine/tracee/wait_trial.h"

#include <algorithm>

namespace probed::tracee {
namespace {

constexpr uint64_t kRoundStops = 32;
constexpr uint64_t kCoreInterval = 8;
constexpr uint64_t kWindowStops = 256;
// A trial costs some hundred stops, so it is repeated ever more rarely while its result stays.
constexpr uint64_t kMinInterval = 1u << 12;
constexpr uint64_t kMaxInterval = 1u << 17;
// A longer gap is the target's own pause, or a tracer that had to wait for its CPU. It counts, or
// starving would go unseen, but only so much, or one pause would decide a trial.
constexpr uint64_t kMaxGapNs = 1'000'000;
// Stops that are rarer than this on average say nothing about their cost.
constexpr uint64_t kRareNs = kMaxGapNs / 2;
// A way that burns or ties down a CPU must be this much faster than sleep: 10 %.
constexpr uint64_t kSleepBonus = 10;

}  // namespace

void WaitTrial::Count(uint64_t now_ns) {
  uint64_t gap_ns = std::min(now_ns - last_ns_, kMaxGapNs);
  last_ns_ = now_ns;
  paused_ = gap_ns == kMaxGapNs;
  if (is_first_) {
    is_first_ = false;
    return;
  }
  elapsed_ns_ += gap_ns;
  if (++stops_ < (settled_ ? kWindowStops : kRoundStops)) return;
  uint64_t cost = elapsed_ns_ / stops_;
  elapsed_ns_ = stops_ = 0;
  settled_ ? EndWindow(cost) : EndRound(cost);
}

bool WaitTrial::asks_for_core() const {
  return !settled_ && way_ == WaitWay::kSleep && stops_ % kCoreInterval == kCoreInterval - 1;
}

void WaitTrial::NoteCore(bool is_shared) {
  ++(is_shared ? cores_shared_ : cores_apart_);
}

void WaitTrial::EndRound(uint64_t cost) {
  if (way_ == WaitWay::kSleep) {
    if (cost > kRareNs) return StartOver();
    shares_core_ = cores_shared_ > 0 && cores_apart_ == 0;
    if (shares_core_) return Settle(WaitWay::kSleep);
  }
  rounds_[static_cast<size_t>(way_)][round_] = cost;
  NextWay();
}

void WaitTrial::NextWay() {
  size_t next = static_cast<size_t>(way_) + 1;
  if (next < kWaitWays) return Use(static_cast<WaitWay>(next));
  cores_shared_ = cores_apart_ = 0;
  if (++round_ < kRounds) return Use(WaitWay::kSleep);
  for (size_t i = 0; i < kWaitWays; ++i) {
    std::sort(rounds_[i].begin(), rounds_[i].end());
    costs_[i] = rounds_[i][kRounds / 2];
  }
  Settle(Fastest());
}

WaitWay WaitTrial::Fastest() const {
  uint64_t best = costs_[0] - costs_[0] / kSleepBonus;
  WaitWay way = WaitWay::kSleep;
  for (size_t i = 1; i < kWaitWays; ++i) {
    if (costs_[i] >= best) continue;
    best = costs_[i];
    way = static_cast<WaitWay>(i);
  }
  return way;
}

// In the first gap after a change the tracer still moves from one CPU to the other.
void WaitTrial::Use(WaitWay way) {
  is_first_ = is_first_ || way != way_;
  way_ = way;
}

void WaitTrial::Settle(WaitWay way) {
  bool is_confirmed = interval_ > 0 && way == chosen_;
  interval_ = is_confirmed ? std::min(interval_ * 2, kMaxInterval) : kMinInterval;
  chosen_ = way;
  settled_ = true;
  settled_cost_ = settled_stops_ = worse_windows_ = 0;
  Use(way);
}

// The load may have changed: at once when stops became dearer, after a while in any case.
void WaitTrial::EndWindow(uint64_t cost) {
  if (cost > kRareNs && way_ == WaitWay::kSleep) return;
  if (settled_cost_ == 0) settled_cost_ = cost;
  worse_windows_ = cost > settled_cost_ + settled_cost_ / 2 ? worse_windows_ + 1 : 0;
  settled_stops_ += kWindowStops;
  if (worse_windows_ >= 2) interval_ = 0;
  if (settled_stops_ >= interval_) StartOver();
}

void WaitTrial::StartOver() {
  settled_ = false;
  round_ = 0;
  cores_shared_ = cores_apart_ = 0;
  shares_core_ = false;
  costs_ = {};
  Use(WaitWay::kSleep);
}

}  // namespace probed::tracee

#include "engine/tracee/placement.h"

#include "base/clock.h"
#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::microseconds kSpin{50};
constexpr uint64_t kTrialStops = 512;
constexpr uint64_t kSettledStops = 1u << 17;
// Stops further apart than this say nothing about the cost of a stop.
constexpr uint64_t kBurstGapNs = 1'000'000;
// A way that burns or ties down a CPU must be this much faster than sleep: 10 %.
constexpr uint64_t kSleepBonus = 10;
constexpr uint64_t kFollowInterval = 64;

WaitWay Fastest(const std::array<uint64_t, kWaitWays>& elapsed) {
  uint64_t best = elapsed[0] - elapsed[0] / kSleepBonus;
  WaitWay way = WaitWay::kSleep;
  for (size_t i = 1; i < kWaitWays; ++i) {
    if (elapsed[i] >= best) continue;
    best = elapsed[i];
    way = static_cast<WaitWay>(i);
  }
  return way;
}

}  // namespace

void WaitTrial::Count(uint64_t now_ns) {
  bool is_burst = now_ns - last_ns_ < kBurstGapNs;
  last_ns_ = now_ns;
  if (!is_burst || stops_ == 0) {
    if (!settled_) stops_ = 0;
    start_ns_ = now_ns;
  }
  ++stops_;
  if (settled_ && stops_ >= kSettledStops) {
    *this = WaitTrial();
  } else if (!settled_ && stops_ > kTrialStops) {
    EndTrial(now_ns - start_ns_);
  }
}

void WaitTrial::EndTrial(uint64_t elapsed_ns) {
  size_t index = static_cast<size_t>(way_);
  elapsed_[index] = elapsed_ns;
  stops_ = 0;
  settled_ = index + 1 == kWaitWays;
  way_ = settled_ ? Fastest(elapsed_) : static_cast<WaitWay>(index + 1);
}

void Placement::Start() {
  affinity_.emplace();
}

void Placement::OnStop(pid_t tid) {
  WaitWay before = trial_.way();
  trial_.Count(MonotonicNow());
  WaitWay way = trial_.way();
  if (way == WaitWay::kFollow && stops_++ % kFollowInterval == 0) Follow(tid);
  if (way == before) return;
  way_.store(way);
  if (trial_.settled()) settled_.store(true);
  if (before != WaitWay::kFollow) return;
  affinity_->Restore();
  cpu_ = -1;
}

void Placement::Follow(pid_t tid) {
  Result<sys::TaskStat> stat = sys::ReadTaskStat(tid);
  if (!stat.ok() || stat->cpu == cpu_) return;
  cpu_ = stat->cpu;
  affinity_->StayOn(cpu_);
}

std::chrono::nanoseconds Placement::spin() const {
  return trial_.way() == WaitWay::kSpin ? kSpin : std::chrono::nanoseconds{0};
}

std::string Placement::Describe() const {
  std::string way = "sleep";
  if (way_.load() == WaitWay::kSpin) way = "spin " + std::to_string(kSpin.count()) + "us";
  if (way_.load() == WaitWay::kFollow) way = "follow";
  return settled_.load() ? way : way + " (measuring)";
}

}  // namespace probed::tracee

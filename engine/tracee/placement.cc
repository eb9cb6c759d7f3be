#include "engine/tracee/placement.h"

#include "base/clock.h"
#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::microseconds kSpin{50};
constexpr uint64_t kFollowInterval = 64;

int CpuOf(pid_t tid) {
  Result<sys::TaskStat> stat = sys::ReadTaskStat(tid);
  return stat.ok() ? stat->cpu : -1;
}

std::string Name(WaitWay way) {
  if (way == WaitWay::kSpin) return "spin " + std::to_string(kSpin.count()) + "us";
  return way == WaitWay::kFollow ? "follow" : "sleep";
}

std::string Tenths(uint64_t nanoseconds) {
  return std::to_string(nanoseconds / 1000) + "." + std::to_string(nanoseconds / 100 % 10);
}

}  // namespace

void Placement::OnStop(pid_t tid) {
  WaitWay way = trial_.way();
  bool was_settled = trial_.settled();
  trial_.Count(MonotonicNow());
  if (trial_.asks_for_core()) trial_.NoteCore(CpuOf(tid) == sys::CurrentCpu());
  if (trial_.way() != way) stops_ = 0;
  // A tracer held on a busy CPU may wait long for its turn. Let the scheduler find it another one.
  if (trial_.way() != WaitWay::kFollow || trial_.paused()) {
    StopFollowing();
  } else if (stops_++ % kFollowInterval == 0) {
    Follow(tid);
  }
  if (was_settled || !trial_.settled()) return;
  std::lock_guard lock(mutex_);
  description_ = Explain();
}

void Placement::Follow(pid_t tid) {
  int cpu = CpuOf(tid);
  if (cpu < 0 || cpu == cpu_) return;
  // Read anew: somebody may have changed where the tracer may run.
  if (cpu_ < 0) affinity_.emplace();
  cpu_ = cpu;
  affinity_->StayOn(cpu_);
}

void Placement::StopFollowing() {
  if (cpu_ < 0) return;
  cpu_ = -1;
  stops_ = 1;
  affinity_->Restore();
}

std::chrono::nanoseconds Placement::spin() const {
  return trial_.way() == WaitWay::kSpin ? kSpin : std::chrono::nanoseconds{0};
}

std::string Placement::Explain() const {
  std::string text = Name(trial_.way());
  if (trial_.shares_core()) return text + " (on the CPU of the thread that stops)";
  return text + " (us a stop: sleep " + Tenths(trial_.cost(WaitWay::kSleep)) + ", spin " +
         Tenths(trial_.cost(WaitWay::kSpin)) + ", follow " + Tenths(trial_.cost(WaitWay::kFollow)) +
         ")";
}

std::string Placement::Describe() const {
  std::lock_guard lock(mutex_);
  return description_;
}

}  // namespace probed::tracee

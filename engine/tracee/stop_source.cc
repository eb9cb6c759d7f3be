#include "engine/tracee/stop_source.h"

#include <thread>

#include "base/clock.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/sys/wait_status.h"

namespace probed::tracee {

using Outcome = sys::Waited::Outcome;

Status StopSource::Start() {
  waiter_tid_ = sys::CurrentTid();
  PROBED_RETURN_IF_ERROR(sys::PrepareTracerThreadSignals());
  return timer_.Create(waiter_tid_);
}

bool StopSource::TakeEnding(const sys::Waited& waited) {
  if (waited.outcome != Outcome::kStatus || !sys::IsEnding(waited.status)) return false;
  if (on_ending_) on_ending_(waited.tid);
  sys::Continue(waited.tid, 0).Ignore();
  return true;
}

std::optional<Stop> StopSource::Next(uint64_t deadline_ns) {
  if (std::optional<Stop> kept = TakeKept(sys::kAnyThread)) return kept;
  sys::Waited waited;
  if (auto spin = placement_.spin(); spin.count() > 0) {
    waited = Spin(MonotonicNow() + static_cast<uint64_t>(spin.count()));
  }
  if (waited.outcome == Outcome::kNothing) waited = Sleep(deadline_ns);
  if (waited.outcome == Outcome::kNoTracees) SleepWithoutTracees(deadline_ns);
  return StopIn(waited);
}

std::optional<Stop> StopSource::Poll() {
  if (std::optional<Stop> kept = TakeKept(sys::kAnyThread)) return kept;
  return StopIn(sys::Wait(sys::kAnyThread, sys::WaitMode::kPoll));
}

std::optional<Stop> StopSource::StopIn(const sys::Waited& waited) {
  if (waited.outcome != Outcome::kStatus || TakeEnding(waited)) return std::nullopt;
  placement_.OnStop(waited.tid);
  return Stop{waited.tid, waited.status};
}

std::optional<Stop> StopSource::NextOf(pid_t tid, uint64_t deadline_ns) {
  if (std::optional<Stop> kept = TakeKept(tid)) return kept;
  while (true) {
    sys::Waited waited = sys::Wait(tid, sys::WaitMode::kPoll);
    if (waited.outcome == Outcome::kNothing) waited = Block(tid, deadline_ns);
    if (TakeEnding(waited)) continue;
    if (waited.outcome == Outcome::kStatus) return Stop{waited.tid, waited.status};
    if (waited.outcome == Outcome::kNoTracees) return std::nullopt;
    if (MonotonicNow() >= deadline_ns) return std::nullopt;
  }
}

std::optional<Stop> StopSource::PollOf(pid_t tid) {
  if (std::optional<Stop> kept = TakeKept(tid)) return kept;
  sys::Waited waited = sys::Wait(tid, sys::WaitMode::kPoll);
  if (waited.outcome != Outcome::kStatus || TakeEnding(waited)) return std::nullopt;
  return Stop{waited.tid, waited.status};
}

sys::Errno StopSource::Seize(pid_t tid, uint64_t options, uint64_t deadline_ns) {
  timer_.Arm(deadline_ns);
  sys::Errno error = sys::Seize(tid, options);
  timer_.Disarm();
  return error;
}

void StopSource::KeepUnclaimed(const Stop& stop) {
  unclaimed_[stop.tid] = stop.status;
  sys::TakeStop(stop.tid);
}

std::optional<Stop> StopSource::TakeKept(pid_t tid) {
  for (auto kept = put_back_.begin(); kept != put_back_.end(); ++kept) {
    if (tid != sys::kAnyThread && kept->tid != tid) continue;
    Stop stop = *kept;
    put_back_.erase(kept);
    return stop;
  }
  auto unclaimed = unclaimed_.find(tid);
  if (unclaimed == unclaimed_.end()) return std::nullopt;
  Stop stop{tid, unclaimed->second};
  unclaimed_.erase(unclaimed);
  return stop;
}

sys::Waited StopSource::Spin(uint64_t until_ns) {
  while (true) {
    sys::Waited waited = sys::Wait(sys::kAnyThread, sys::WaitMode::kPoll);
    if (waited.outcome != Outcome::kNothing) return waited;
    if (wanted_.load() || MonotonicNow() >= until_ns) return waited;
  }
}

sys::Waited StopSource::Sleep(uint64_t deadline_ns) {
  asleep_.store(true);
  sys::Waited waited{.outcome = Outcome::kInterrupted};
  if (!wanted_.load()) waited = Block(sys::kAnyThread, deadline_ns);
  asleep_.store(false);
  if (waited.outcome == Outcome::kInterrupted) wanted_.store(false);
  return waited;
}

sys::Waited StopSource::Block(pid_t tid, uint64_t deadline_ns) {
  if (deadline_ns != 0) timer_.Arm(deadline_ns);
  sys::Waited waited = sys::Wait(tid, sys::WaitMode::kBlock);
  if (deadline_ns != 0) timer_.Disarm();
  return waited;
}

void StopSource::SleepWithoutTracees(uint64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  auto is_wanted = [this] { return wanted_.exchange(false); };
  if (deadline_ns == 0) return woken_.wait(lock, is_wanted);
  uint64_t now = MonotonicNow();
  if (now < deadline_ns) {
    woken_.wait_for(lock, std::chrono::nanoseconds(deadline_ns - now), is_wanted);
  }
}

void StopSource::Wake() {
  {
    std::lock_guard lock(mutex_);
    wanted_.store(true);
  }
  woken_.notify_one();
  // The signal may come after the waiter looked at wanted_ and before it is in the kernel, so it is
  // sent until the waiter is awake.
  while (asleep_.load() && wanted_.load()) {
    sys::SendToThread(waiter_tid_, sys::kWakeSignal).Ignore();
    std::this_thread::yield();
  }
}

}  // namespace probed::tracee

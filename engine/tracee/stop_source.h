#pragma once
// The one place that waits for stops. Tracer thread only, but for Wake().
//
// The thread sleeps in waitpid itself, not in epoll over a signalfd: that needs no SIGCHLD, so it
// does not depend on the signal masks of the daemon's other threads, and saves two system calls a
// stop. Other threads end the sleep with a signal to this thread.

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "engine/sys/errno_value.h"
#include "engine/sys/wait.h"
#include "engine/sys/wake_timer.h"
#include "engine/tracee/placement.h"

namespace probed::tracee {

struct Stop {
  pid_t tid = 0;
  int status = 0;
};

class StopSource {
 public:
  // On the thread that will wait.
  Status Start();

  // Called in the stop of a thread that is about to end, which is reported to nobody else: there is
  // nothing that could be done in it but to look.
  void set_on_ending(std::function<void(pid_t)> callback) { on_ending_ = std::move(callback); }

  // The next stop of any thread; nothing when Wake() was called or `deadline_ns` (MonotonicNow(),
  // 0: none) is over.
  std::optional<Stop> Next(uint64_t deadline_ns);
  // The next stop of this thread only, those of others wait.
  std::optional<Stop> NextOf(pid_t tid, uint64_t deadline_ns);

  // The same without waiting.
  std::optional<Stop> Poll();
  // Of this thread only. Cheap however many threads are traced, which Next() is not: the
  // kernel looks at one after the other.
  std::optional<Stop> PollOf(pid_t tid);

  // PTRACE_SEIZE, which the kernel lets wait while the process is in an exec: EINTR when it still
  // did at the deadline, or when Wake() was called.
  sys::Errno Seize(pid_t tid, uint64_t options, uint64_t deadline_ns);

  // A stop of a thread that nobody knows yet: the first stop of a new child may be reported before
  // the event of its parent. Kept until NextOf() asks for it.
  void KeepUnclaimed(const Stop& stop);
  const std::map<pid_t, int>& unclaimed() const { return unclaimed_; }

  // A stop that was taken with NextOf() and turned out to be for the main loop.
  void PutBack(const Stop& stop) { put_back_.push_back(stop); }

  // Makes Next() return. Any thread.
  void Wake();

  const Placement& placement() const { return placement_; }

 private:
  bool TakeEnding(const sys::Waited& waited);
  std::optional<Stop> StopIn(const sys::Waited& waited);
  std::optional<Stop> TakeKept(pid_t tid);
  sys::Waited Spin(uint64_t until_ns);
  sys::Waited Sleep(uint64_t deadline_ns);
  sys::Waited Block(pid_t tid, uint64_t deadline_ns);
  void SleepWithoutTracees(uint64_t deadline_ns);

  std::function<void(pid_t)> on_ending_;
  std::deque<Stop> put_back_;
  std::map<pid_t, int> unclaimed_;
  Placement placement_;
  pid_t waiter_tid_ = 0;
  sys::WakeTimer timer_;

  // Wake() sets wanted_ and then looks at asleep_; Next() does it the other way round, so one of
  // them sees the other.
  std::atomic<bool> wanted_ = false;
  std::atomic<bool> asleep_ = false;
  std::mutex mutex_;
  std::condition_variable woken_;  // for the sleep without tracees
};

}  // namespace probed::tracee

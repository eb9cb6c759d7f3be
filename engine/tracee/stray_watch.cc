#include "engine/tracee/stray_watch.h"

#include <algorithm>
#include <chrono>
#include <iterator>

#include "base/clock.h"
#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::milliseconds kInterval{50};
// Of a machine that makes more between two looks, the latest are looked at.
constexpr pid_t kMostLookedAt = 4096;
// Each try may keep the tracer for a while.
constexpr std::chrono::seconds kPause{5};

}  // namespace

Stray LookAtStray(pid_t tracer, pid_t task) {
  auto status = sys::ReadTaskStatus(task);
  if (!status.ok() || status->tracer_pid == tracer) return Stray::kNone;
  if (status->state == 'Z' || status->state == 'X') return Stray::kNone;
  auto maker = sys::ReadTaskStatus(status->tgid != task ? status->tgid : status->parent_pid);
  if (!maker.ok() || maker->tracer_pid != tracer) return Stray::kNone;
  return status->tracer_pid == 0 ? Stray::kFree : Stray::kTracedByOthers;
}

void StrayWatch::Start(pid_t tracer, OnFound found) {
  tracer_ = tracer;
  found_ = std::move(found);
  thread_ = std::thread([this] { Run(); });
}

StrayWatch::~StrayWatch() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(wake_mutex_);
    quit_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StrayWatch::SetWanted(bool wanted) {
  if (wanted_.load(std::memory_order_relaxed) == wanted) return;
  if (wanted) {
    std::lock_guard lock(mutex_);
    last_ = sys::LastTask();
  }
  std::lock_guard lock(wake_mutex_);
  wanted_.store(wanted);
  changed_.notify_one();
}

// Numbers begin anew after the largest: then what came before is passed over.
std::vector<pid_t> StrayWatch::Look() {
  std::lock_guard lock(mutex_);
  const pid_t now = sys::LastTask();
  const pid_t first = now < last_ ? 1 : last_ + 1;
  last_ = now;
  std::vector<pid_t> strays;
  for (pid_t task = std::max(first, now - kMostLookedAt + 1); task <= now; ++task) {
    const Stray found = LookAtStray(tracer_, task);
    if (found == Stray::kFree) strays.push_back(task);
    if (found == Stray::kTracedByOthers) Postpone(task, kInterval);
  }
  LookAgain(strays);
  return strays;
}

void StrayWatch::LookAgain(std::vector<pid_t>& strays) {
  const uint64_t now_ns = MonotonicNow();
  for (auto entry = later_.begin(); entry != later_.end();) {
    const Stray found =
        entry->second <= now_ns ? LookAtStray(tracer_, entry->first) : Stray::kTracedByOthers;
    if (found == Stray::kFree) strays.push_back(entry->first);
    entry = found == Stray::kTracedByOthers ? std::next(entry) : later_.erase(entry);
  }
}

void StrayWatch::Postpone(pid_t task, std::chrono::nanoseconds wait) {
  if (later_.size() < kMostLookedAt) later_[task] = MonotonicNow() + wait.count();
}

void StrayWatch::TryLater(pid_t task) {
  std::lock_guard lock(mutex_);
  Postpone(task, kPause);
}

void StrayWatch::Run() {
  std::unique_lock lock(wake_mutex_);
  while (!quit_) {
    changed_.wait(lock, [this] { return quit_ || wanted_.load(); });
    if (changed_.wait_for(lock, kInterval, [this] { return quit_; })) return;
    lock.unlock();
    const auto strays = Look();
    if (!strays.empty()) found_(strays);
    lock.lock();
  }
}

}  // namespace probed::tracee

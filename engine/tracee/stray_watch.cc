#include "engine/tracee/stray_watch.h"

#include <algorithm>
#include <chrono>

#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

constexpr std::chrono::milliseconds kInterval{50};
// Of a machine that makes more between two looks, the latest are looked at.
constexpr pid_t kMostLookedAt = 4096;

}  // namespace

bool IsStrayOf(pid_t tracer, pid_t task) {
  auto status = sys::ReadTaskStatus(task);
  if (!status.ok() || status->tracer_pid != 0) return false;
  if (status->state == 'Z' || status->state == 'X') return false;
  auto maker = sys::ReadTaskStatus(status->tgid != task ? status->tgid : status->parent_pid);
  return maker.ok() && maker->tracer_pid == tracer;
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
    if (IsStrayOf(tracer_, task)) strays.push_back(task);
  }
  return strays;
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

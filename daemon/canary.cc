#include "daemon/canary.h"

#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <utility>

#include "engine/sys/pidfd.h"

namespace probed::daemon {
namespace {

void SleepUntil(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait(lock, stop, [] { return false; });
}

}  // namespace

Canary::Canary(std::jthread thread, UniqueFd end)
    : end_(std::move(end)), thread_(std::move(thread)) {}

Result<Canary> Canary::Start() {
  std::promise<pid_t> started;
  auto tid = started.get_future();
  std::jthread thread([&started](const std::stop_token& stop) {
    Hurry(0);
    started.set_value(gettid());
    SleepUntil(stop);
  });
  PROBED_TRY(UniqueFd end, sys::OpenEndOfThread(tid.get()));
  return Canary(std::move(thread), std::move(end));
}

void Hurry(pid_t tid) {
  constexpr int kNice = -20;
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(tid), kNice);
}

}  // namespace probed::daemon

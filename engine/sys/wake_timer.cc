#include "engine/sys/wake_timer.h"

#include <cerrno>
#include <csignal>

#include "engine/sys/signal.h"

namespace probed::sys {
namespace {

constexpr uint64_t kNanosecondsPerSecond = 1'000'000'000;
constexpr long kRepeatNanoseconds = 1'000'000;

}  // namespace

WakeTimer::~WakeTimer() {
  if (created_) ::timer_delete(timer_);
}

Status WakeTimer::Create(pid_t tid) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kWakeSignal;
  event._sigev_un._tid = tid;  // glibc has no public name for it
  if (::timer_create(CLOCK_MONOTONIC, &event, &timer_) != 0) {
    return ErrnoError(errno, "timer_create");
  }
  created_ = true;
  return {};
}

void WakeTimer::Arm(uint64_t monotonic_ns) {
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(monotonic_ns / kNanosecondsPerSecond);
  when.it_value.tv_nsec = static_cast<long>(monotonic_ns % kNanosecondsPerSecond);
  when.it_interval.tv_nsec = kRepeatNanoseconds;
  ::timer_settime(timer_, TIMER_ABSTIME, &when, nullptr);
}

void WakeTimer::Disarm() {
  itimerspec never{};
  ::timer_settime(timer_, 0, &never, nullptr);
}

}  // namespace probed::sys

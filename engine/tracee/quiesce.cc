#include "engine/tracee/quiesce.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/sys/proc.h"

namespace probed::tracee {
namespace {

// A running thread stops within microseconds. After this long we look at what it is doing.
constexpr uint64_t kPatienceNs = 2'000'000;

Error Gone(const Process& process) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "process " + std::to_string(process.pid()) + " is gone",
               .hint = "",
               .metadata = {{"pid", std::to_string(process.pid())}}};
}

// "12 (S), 13 (D)": as ps -L would tell.
std::string DescribeThreads(const Process& process) {
  constexpr size_t kMostShown = 8;
  std::string text;
  size_t shown = 0;
  for (const auto& [tid, thread] : process.threads()) {
    if (thread->stopped()) continue;
    if (shown++ == kMostShown) return text + ", ...";
    Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
    if (!text.empty()) text += ", ";
    text += std::to_string(tid) + " (" + std::string(1, status.ok() ? status->state : '?') + ")";
  }
  return text;
}

Error Late(Process& process) {
  process.set_unresponsive(true);
  std::string threads = DescribeThreads(process);
  return Error{
      .code = ErrorCode::kDeadlineExceeded,
      .reason = "DEADLINE",
      .message = "process " + std::to_string(process.pid()) +
                 " could not be stopped in time: threads " + threads + " run on",
      .hint =
          "a thread in state D is in uninterruptible sleep (waiting for a vfork child, a disk, a "
          "frozen control group): try again when that is over",
      .metadata = {{"pid", std::to_string(process.pid())}, {"threads", threads}}};
}

Thread* FindStopped(const Process& process) {
  for (const auto& [tid, thread] : process.threads()) {
    if (thread->stopped() && !thread->stepping()) return thread.get();
  }
  return nullptr;
}

std::vector<pid_t> RunningThreads(const Process& process) {
  std::vector<pid_t> running;
  for (const auto& [tid, thread] : process.threads()) {
    if (!thread->stopped() || thread->stepping()) running.push_back(tid);
  }
  return running;
}

// Dead threads never stop, and those in uninterruptible sleep only when they wake.
bool MustBeWaitedFor(pid_t tid) {
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
  constexpr std::string_view kNotRunning = "ZXD";
  return status.ok() && kNotRunning.find(status->state) == std::string_view::npos;
}

void AskToStop(Thread& thread) {
  if (thread.stopped() || thread.gone() || thread.park) return;
  thread.park = true;
  thread.Interrupt();
}

void StopParking(const Process& process) {
  for (const auto& [tid, thread] : process.threads())
    thread->park = false;
}

}  // namespace

void Quiescer::Pump(uint64_t deadline_ns) {
  std::optional<Stop> stop = NextInRound();
  if (!stop) stop = stops_.Next(deadline_ns);
  if (!stop) return;
  turns_.CountStop();
  dispatcher_.Handle(*stop);
}

std::optional<Stop> Quiescer::NextInRound() {
  if (!turns_.in_round()) return std::nullopt;
  std::optional<Stop> stop;
  if (!turns_.is_long()) stop = stops_.Poll();
  if (!stop) EndRound();
  return stop;
}

void Quiescer::EndRound() {
  for (pid_t tid : turns_.End()) {
    Thread* thread = registry_.FindThread(tid);
    if (thread != nullptr && std::exchange(thread->awaits_turn, false)) LeaveStop(*thread);
  }
}

uint64_t Quiescer::DeadlineFor(const Process& process, uint64_t deadline_ns) {
  constexpr uint64_t kShortNs = 300'000'000;
  return process.unresponsive() ? std::min(deadline_ns, MonotonicNow() + kShortNs) : deadline_ns;
}

bool Quiescer::IsAlive(const Process& process) const {
  return registry_.FindProcess(process.pid()) == &process && !process.threads().empty();
}

Result<Thread*> Quiescer::StopOne(Process& process, uint64_t deadline_ns) {
  if (!IsAlive(process)) return Gone(process);
  if (Thread* stopped = FindStopped(process)) {
    stopped->awaits_turn = false;
    return stopped;
  }
  deadline_ns = DeadlineFor(process, deadline_ns);
  AskToStop(*process.threads().begin()->second);
  uint64_t patience_ns = MonotonicNow() + kPatienceNs;
  while (IsAlive(process)) {
    if (Thread* stopped = FindStopped(process)) {
      StopParking(process);
      process.set_unresponsive(false);
      stopped->awaits_turn = false;
      return stopped;
    }
    uint64_t now = MonotonicNow();
    if (now >= deadline_ns) {
      StopParking(process);
      return Late(process);
    }
    if (now >= patience_ns) {
      for (const auto& [tid, thread] : process.threads())
        AskToStop(*thread);
    }
    Pump(std::min(deadline_ns, now < patience_ns ? patience_ns : now + kPatienceNs));
  }
  return Gone(process);
}

void Quiescer::ReleaseOne(Thread& thread) {
  if (thread.stopped() && !thread.in_callback) LeaveStop(thread);
}

bool Quiescer::Sweep(const std::vector<pid_t>& tids) {
  bool found = false;
  for (pid_t tid : tids) {
    std::optional<Stop> stop = stops_.PollOf(tid);
    if (!stop) continue;
    found = true;
    dispatcher_.Handle(*stop);
  }
  return found;
}

Status Quiescer::StopAll(Process& process, uint64_t deadline_ns) {
  if (!IsAlive(process)) return Gone(process);
  deadline_ns = DeadlineFor(process, deadline_ns);
  process.Hold();
  for (const auto& [tid, thread] : process.threads())
    AskToStop(*thread);
  uint64_t patience_ns = MonotonicNow() + kPatienceNs;
  while (IsAlive(process)) {
    std::vector<pid_t> running = RunningThreads(process);
    bool done = running.empty();
    if (!done && Sweep(running)) continue;
    uint64_t now = MonotonicNow();
    if (!done && now >= patience_ns) {
      bool none_left = std::none_of(running.begin(), running.end(), MustBeWaitedFor);
      done = none_left && FindStopped(process) != nullptr;
      patience_ns = now + kPatienceNs;
    }
    if (done) {
      process.set_unresponsive(false);
      return {};
    }
    if (now >= deadline_ns) {
      Error late = Late(process);
      ReleaseAll(process);
      return late;
    }
    Pump(std::min(deadline_ns, patience_ns));
  }
  return Gone(process);
}

void Quiescer::ReleaseAll(Process& process) {
  process.Unhold();
  if (process.held()) return;
  StopParking(process);
  std::vector<Thread*> stopped;
  for (const auto& [tid, thread] : process.threads()) {
    if (thread->stopped() && !thread->in_callback) stopped.push_back(thread.get());
  }
  for (Thread* thread : stopped)
    LeaveStop(*thread);
}

}  // namespace probed::tracee

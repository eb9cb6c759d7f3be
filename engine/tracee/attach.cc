#include "engine/tracee/attach.h"

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/signal.h"
#include "engine/tracee/attach_check.h"
#include "engine/tracee/deadline.h"

namespace probed::tracee {
namespace {

constexpr uint64_t kGiveUpNs = 1'000'000'000;
constexpr uint64_t kChangeOfLeaderNs = 300'000'000;
constexpr uint64_t kLookAgainNs = 1'000'000;

Error AlreadyAttached(pid_t pid) {
  return Error{.code = ErrorCode::kAlreadyExists,
               .reason = "ALREADY_ATTACHED",
               .message = "already attached to process " + std::to_string(pid),
               .hint = "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

}  // namespace

// A leader that has ended may be about to get another thread's place.
bool Attacher::Revives(pid_t pid) {
  uint64_t moment_ns = MonotonicNow() + kChangeOfLeaderNs;
  do {
    auto status = sys::ReadTaskStatus(pid);
    if (status.ok() && status->state != 'Z' && status->state != 'X') return status->tgid == pid;
    quiescer_.Pump(MonotonicNow() + kLookAgainNs);
  } while (MonotonicNow() < moment_ns);
  return false;
}

// An exec has ended the threads that were seen, or is giving the process's id to another thread,
// and until that is done /proc shows neither (fs/exec.c, de_thread): there is a new program to
// attach to. kill(2) knows better than /proc. The exec may wait for threads that we have left and
// that are ours until their death is taken.
bool Attacher::IsReplaced(pid_t pid, const Error& error, uint64_t deadline_ns) {
  if (error.reason == "ZOMBIE") return Revives(pid);
  if (error.reason != "PROCESS_GONE" && error.reason != "PROCESS_NOT_FOUND") return false;
  while (sys::ProcessExists(pid) && MonotonicNow() < deadline_ns) {
    quiescer_.Pump(MonotonicNow() + kLookAgainNs);
    auto status = sys::ReadTaskStatus(pid);
    if (status.ok()) return status->tgid == pid;
  }
  return false;
}

Result<Process*> Attacher::Attach(const AttachRequest& request) {
  if (registry_.FindProcess(request.pid) != nullptr) return AlreadyAttached(request.pid);
  uint64_t deadline_ns = DeadlineAfter(request.deadline);
  while (true) {
    auto attached = AttachOnce(request, deadline_ns);
    bool is_replaced = !attached.ok() && IsReplaced(request.pid, attached.error(), deadline_ns);
    if (!is_replaced || MonotonicNow() >= deadline_ns) return attached;
  }
}

Result<Process*> Attacher::AttachOnce(const AttachRequest& request, uint64_t deadline_ns) {
  PROBED_RETURN_IF_ERROR(CheckAttachable(request.pid));
  PROBED_TRY(std::unique_ptr<Process> opened, Process::Open(request.pid, stops_));
  Process& process = registry_.Add(std::move(opened));
  process.set_follow_children(request.follow_children);
  process.set_awaiting_exec(request.awaiting_exec);
  Status seized = seizer_.SeizeAll(process, deadline_ns);
  if (seized.ok()) return &process;
  GiveUp(process);
  return std::move(seized).error();
}

void Attacher::GiveUp(Process& process) {
  if (quiescer_.StopAll(process, MonotonicNow() + kGiveUpNs).ok()) return LeaveStopped(process);
  for (const auto& [tid, thread] : process.threads()) {
    registry_.AddLeaving(tid);
    thread->Interrupt();
  }
  registry_.Remove(process);
}

void Attacher::LeaveStopped(Process& process) {
  for (const auto& [tid, thread] : process.threads()) {
    if (thread->stopped()) {
      thread->Detach();
    } else if (!thread->gone()) {
      registry_.AddLeaving(tid);
    }
  }
  registry_.Remove(process);
}

}  // namespace probed::tracee

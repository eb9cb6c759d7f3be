#include "engine/tracee/attach.h"

#include <sys/ptrace.h>

#include <cerrno>

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/tracee/attach_check.h"
#include "engine/tracee/deadline.h"

namespace probed::tracee {
namespace {

constexpr uint64_t kGiveUpNs = 1'000'000'000;

Error AttachError(pid_t pid, ErrorCode code, std::string reason, std::string message) {
  return Error{.code = code,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

}  // namespace

uint64_t TraceOptions() {
  return PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
         PTRACE_O_TRACESYSGOOD;
}

Result<Process*> Attacher::Attach(const AttachRequest& request) {
  if (registry_.FindProcess(request.pid) != nullptr) {
    return AttachError(request.pid, ErrorCode::kAlreadyExists, "ALREADY_ATTACHED",
                       "already attached to process " + std::to_string(request.pid));
  }
  PROBED_RETURN_IF_ERROR(CheckAttachable(request.pid));
  PROBED_TRY(std::unique_ptr<Process> opened, Process::Open(request.pid, stops_));
  Process& process = registry_.Add(std::move(opened));
  process.set_follow_children(request.follow_children);
  process.set_awaiting_exec(request.awaiting_exec);
  Status seized = SeizeAll(process, DeadlineAfter(request.deadline));
  if (seized.ok()) return &process;
  GiveUp(process);
  return std::move(seized).error();
}

Status Attacher::SeizeAll(Process& process, uint64_t deadline_ns) {
  while (true) {
    PROBED_TRY(size_t added, SeizeNew(process));
    // A thread made by one that we did not trace yet shows up in the next listing; one made by a
    // traced thread is traced from birth.
    if (added == 0) break;
    if (MonotonicNow() >= deadline_ns) {
      return AttachError(process.pid(), ErrorCode::kDeadlineExceeded, "DEADLINE",
                         "process " + std::to_string(process.pid()) +
                             " makes threads faster than they can be attached to");
    }
  }
  if (!process.threads().empty()) return {};
  return AttachError(process.pid(), ErrorCode::kNotFound, "PROCESS_GONE",
                     "process " + std::to_string(process.pid()) + " ended while being attached to");
}

Result<size_t> Attacher::SeizeNew(Process& process) {
  size_t added = 0;
  PROBED_TRY(std::vector<pid_t> tasks, sys::ListTasks(process.pid()));
  for (pid_t tid : tasks) {
    if (process.threads().contains(tid)) continue;
    PROBED_TRY(bool taken, SeizeThread(process, tid));
    if (taken) ++added;
  }
  return added;
}

Result<bool> Attacher::SeizeThread(Process& process, pid_t tid) {
  sys::Errno error = sys::Seize(tid, TraceOptions());
  if (error.ok()) {
    registry_.AddThread(process, tid, Thread::Role::kThread);
    process.CheckSeccomp(tid);
    return true;
  }
  if (error.value == ESRCH) return false;
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
  bool is_dead = !status.ok() || status->state == 'Z' || status->state == 'X';
  if (is_dead || status->tracer_pid == sys::CurrentTid()) return false;
  return DiagnoseRefusal(process.pid(), *status, error.value);
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

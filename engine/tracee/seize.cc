#include "engine/tracee/seize.h"

#include <sys/ptrace.h>

#include <cerrno>

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/tracee/attach_check.h"

namespace probed::tracee {
namespace {

// How long ptrace may wait for an exec before we look whether the exec waits for us.
constexpr uint64_t kExecPatienceNs = 2'000'000;
// A thread that is just ending is refused like one that must not be traced, and an exec gives its
// id to a living one.
constexpr uint64_t kDisbeliefNs = 300'000'000;
// Of a program that does that all the time on a busy machine, not much is seen in that time.
constexpr int kLeastRefusals = 100;

Error TooLate(pid_t pid, bool in_exec) {
  std::string process = "process " + std::to_string(pid);
  return Error{.code = ErrorCode::kDeadlineExceeded,
               .reason = "DEADLINE",
               .message = in_exec ? process + " is in the middle of an exec that does not end"
                                  : process + " makes threads faster than they can be attached to",
               .hint = in_exec ? "a thread of it may be in uninterruptible sleep: ps -L" : "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

Error Gone(pid_t pid) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "process " + std::to_string(pid) + " ended while being attached to",
               .hint = "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

std::vector<pid_t> Tids(const Process& process) {
  std::vector<pid_t> tids;
  for (const auto& [tid, thread] : process.threads())
    tids.push_back(tid);
  return tids;
}

}  // namespace

uint64_t TraceOptions() {
  return PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC |
         PTRACE_O_TRACESYSGOOD;
}

// A thread made by one that we did not trace yet shows up in the next listing; one made by a traced
// thread is traced from birth.
Status Seizer::SeizeAll(Process& process, uint64_t deadline_ns) {
  believe_from_ns_ = MonotonicNow() + kDisbeliefNs;
  refusals_ = 0;
  while (true) {
    PROBED_TRY(Round round, SeizeNew(process));
    if (process.threads().empty() && !round.again) return Gone(process.pid());
    if (round.taken == 0 && !round.again) {
      PROBED_TRY(bool replaced, DropReplacedLeader(process));
      if (!replaced) return {};
    }
    if (MonotonicNow() >= deadline_ns) return TooLate(process.pid(), round.again);
    if (round.again) ReapEnded(process);
    if (registry_.FindProcess(process.pid()) != &process) return Gone(process.pid());
  }
}

Result<Seizer::Round> Seizer::SeizeNew(Process& process) {
  Round round;
  PROBED_TRY(std::vector<pid_t> tasks, sys::ListTasks(process.pid()));
  for (pid_t tid : tasks) {
    if (process.threads().contains(tid)) continue;
    PROBED_RETURN_IF_ERROR(Seize(process, tid, Thread::Role::kThread, round));
  }
  if (round.taken == 0 && !round.again) PROBED_RETURN_IF_ERROR(SeizeSharers(process, round));
  return round;
}

// A vfork child runs the program's code in the program's memory: untraced, it would die of our
// breakpoints.
Status Seizer::SeizeSharers(Process& process, Round& round) {
  for (pid_t tid : Tids(process)) {
    for (pid_t child : sys::ListChildren(process.pid(), tid)) {
      if (process.threads().contains(child)) continue;
      if (sys::SharesMemory(process.pid(), child) != sys::Sharing::kYes) continue;
      PROBED_RETURN_IF_ERROR(Seize(process, child, Thread::Role::kMemorySharer, round));
    }
  }
  return {};
}

// What an exec has renamed meanwhile (TakeRenamed) has taken the leader's id.
bool Seizer::TakeStray(Process& process, pid_t task, Thread::Role role) {
  if (!stops_.Seize(task, TraceOptions(), MonotonicNow() + kExecPatienceNs).ok()) return false;
  bool is_thread = role == Thread::Role::kThread;
  if (is_thread && !sys::IsTaskOf(process.pid(), task)) return TakeRenamed(process).ok();
  Thread& thread = registry_.AddThread(process, task, role);
  thread.follow_exec = process.follow_children();
  process.CheckSeccomp(task);
  thread.park = process.held();
  if (thread.park) thread.Interrupt();
  return true;
}

Status Seizer::Seize(Process& process, pid_t tid, Thread::Role role, Round& round) {
  PROBED_TRY(Outcome outcome, TrySeize(process.pid(), tid));
  if (outcome == Outcome::kTryAgain) round.again = true;
  if (outcome != Outcome::kTaken) return {};
  ++round.taken;
  bool is_thread = role == Thread::Role::kThread;
  if (is_thread && !sys::IsTaskOf(process.pid(), tid)) return TakeRenamed(process);
  registry_.AddThread(process, tid, role).follow_exec = process.follow_children();
  process.CheckSeccomp(tid);
  return {};
}

// The kernel looks a thread up and then waits for the exec to be over: what we have got has by then
// taken the leader's id, and may be past the report of its exec. Or it has ended.
Status Seizer::TakeRenamed(Process& process) {
  Result<sys::TaskStatus> leader = sys::ReadTaskStatus(process.pid());
  if (!leader.ok() || leader->tracer_pid != sys::CurrentTid()) return {};
  if (!process.threads().contains(process.pid())) {
    registry_.AddThread(process, process.pid(), Thread::Role::kThread);
  }
  return process.StartOver();
}

Result<Seizer::Outcome> Seizer::TrySeize(pid_t pid, pid_t tid) {
  sys::Errno error = stops_.Seize(tid, TraceOptions(), MonotonicNow() + kExecPatienceNs);
  if (error.ok()) return Outcome::kTaken;
  if (error.value == EINTR) return Outcome::kTryAgain;
  if (error.value == ESRCH) return Outcome::kPassedOver;
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(tid);
  bool is_dead = !status.ok() || status->state == 'Z' || status->state == 'X';
  if (is_dead || status->tracer_pid == sys::CurrentTid()) return Outcome::kPassedOver;
  Error refusal = DiagnoseRefusal(pid, *status, error.value);
  bool has_cause = refusal.reason != "MISSING_CAPABILITY";
  bool is_believed = ++refusals_ > kLeastRefusals && MonotonicNow() >= believe_from_ns_;
  if (has_cause || is_believed) return refusal;
  return Outcome::kTryAgain;
}

// A thread that was not ours has exec'ed: it has taken the leader's place and id, and the leader
// went without a word (de_thread() releases it).
Result<bool> Seizer::DropReplacedLeader(Process& process) {
  Thread* leader = registry_.FindThread(process.pid());
  if (leader == nullptr) return false;
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(process.pid());
  if (!status.ok() || status->tracer_pid == sys::CurrentTid()) return false;
  registry_.Remove(*leader);
  PROBED_RETURN_IF_ERROR(process.StartOver());
  return true;
}

// The exec waits until the threads that it has ended are reaped, and that is up to their tracer.
void Seizer::ReapEnded(Process& process) {
  if (!quiescer_.Sweep(Tids(process))) quiescer_.Pump(MonotonicNow() + kExecPatienceNs);
}

}  // namespace probed::tracee

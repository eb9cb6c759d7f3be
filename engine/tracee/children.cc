#include "engine/tracee/children.h"

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/tracee/callback.h"
#include "engine/tracee/dispatcher.h"

namespace probed::tracee {
namespace {

// A new child is runnable and stops before it reaches user mode, so this is only ever used up by a
// frozen one.
constexpr uint64_t kFirstStopNs = 1'000'000'000;

bool RunsInMemoryOf(pid_t parent_tid, pid_t child, sys::ChildKind kind) {
  switch (sys::SharesMemory(parent_tid, child)) {
    case sys::Sharing::kYes:
      return true;
    case sys::Sharing::kNo:
      return false;
    case sys::Sharing::kUnknown:
      return kind == sys::ChildKind::kVfork;
  }
  return false;
}

}  // namespace

void Children::Adopt(Thread& parent, pid_t child, sys::ChildKind kind) {
  early_parents_.erase(child);
  std::optional<Stop> first = stops_.NextOf(child, MonotonicNow() + kFirstStopNs);
  if (!first || sys::IsDeath(first->status)) return;
  Place(parent.process(), parent.tid(), child, kind);
}

void Children::Place(Process& parent, pid_t parent_tid, pid_t child, sys::ChildKind kind) {
  if (sys::IsTaskOf(parent.pid(), child)) {
    return AddThread(parent, child, Thread::Role::kThread, true);
  }
  if (RunsInMemoryOf(parent_tid, child, kind)) {
    bool follow = observer_.OnVfork(parent, child);
    return AddThread(parent, child, Thread::Role::kMemorySharer, follow);
  }
  AddForked(parent, child);
}

void Children::AddThread(Process& process, pid_t tid, Thread::Role role, bool follow_exec) {
  Thread& thread = registry_.AddThread(process, tid, role);
  thread.follow_exec = follow_exec;
  thread.park = process.held();
  thread.EnterStop(StopKind::kInterrupt);
  {
    Callback callback(thread);
    Stopped token = thread.Token();
    observer_.OnThreadStart(token);
  }
  LeaveStop(thread);
}

void Children::AddForked(Process& parent, pid_t child) {
  Result<std::unique_ptr<Process>> opened = Process::Open(child, stops_);
  if (!opened.ok()) return sys::Detach(child, 0).Ignore();
  Process& process = registry_.Add(std::move(*opened));
  process.InheritFrom(parent);
  Thread& thread = registry_.AddThread(process, child, Thread::Role::kThread);
  thread.EnterStop(StopKind::kInterrupt);
  ChildChoice choice = ChildChoice::kRelease;
  {
    Callback callback(thread);
    Stopped token = thread.Token();
    choice = observer_.OnFork(parent, process, token);
  }
  if (choice == ChildChoice::kFollow) return LeaveStop(thread);
  thread.Detach();
  registry_.Remove(process);
}

void Children::KeepEarlyStop(const Stop& stop) {
  stops_.KeepUnclaimed(stop);
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(stop.tid);
  if (!status.ok()) return;
  bool is_leader = status->tgid == stop.tid;
  early_parents_[stop.tid] = is_leader ? status->parent_pid : status->tgid;
}

void Children::AdoptOrphansOf(Process& process) {
  std::map<pid_t, pid_t> early = early_parents_;
  for (auto [child, parent_pid] : early) {
    if (parent_pid != process.pid()) continue;
    early_parents_.erase(child);
    std::optional<Stop> first = stops_.NextOf(child, MonotonicNow());
    if (!first || sys::IsDeath(first->status)) continue;
    AddForked(process, child);
  }
}

void Children::LeaveParent(Thread& thread) {
  Process& parent = thread.process();
  pid_t pid = thread.tid();
  bool follow = thread.follow_exec;
  observer_.OnThreadExit(parent, pid);
  registry_.Remove(thread);
  Result<std::unique_ptr<Process>> opened = Process::Open(pid, stops_);
  if (!follow || !opened.ok()) return sys::Detach(pid, 0).Ignore();
  Process& process = registry_.Add(std::move(*opened));
  process.set_follow_children(parent.follow_children());
  process.CheckSeccomp(pid);
  Thread& leader = registry_.AddThread(process, pid, Thread::Role::kThread);
  leader.EnterStop(StopKind::kInterrupt);
  ChildChoice choice = ChildChoice::kRelease;
  {
    Callback callback(leader);
    Stopped token = leader.Token();
    choice = observer_.OnChildExec(parent, process, token);
  }
  if (choice == ChildChoice::kFollow) return LeaveStop(leader);
  leader.Detach();
  registry_.Remove(process);
}

void Children::EndOtherThreads(Thread& survivor) {
  Process& process = survivor.process();
  std::vector<Thread*> ended;
  for (const auto& [tid, thread] : process.threads()) {
    bool is_other = thread.get() != &survivor && thread->role() == Thread::Role::kThread;
    if (is_other) ended.push_back(thread.get());
  }
  for (Thread* thread : ended) {
    observer_.OnThreadExit(process, thread->tid());
    registry_.Remove(*thread);
  }
}

}  // namespace probed::tracee

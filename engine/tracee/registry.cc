#include "engine/tracee/registry.h"

namespace probed::tracee {

Process* Registry::FindProcess(pid_t pid) const {
  auto found = processes_.find(pid);
  return found == processes_.end() ? nullptr : found->second.get();
}

Thread* Registry::FindThread(pid_t tid) const {
  auto found = threads_.find(tid);
  return found == threads_.end() ? nullptr : found->second;
}

std::vector<Process*> Registry::processes() const {
  std::vector<Process*> all;
  for (const auto& [pid, process] : processes_)
    all.push_back(process.get());
  return all;
}

Process& Registry::Add(std::unique_ptr<Process> process) {
  Process& added = *process;
  if (Process* stale = FindProcess(added.pid())) Remove(*stale);
  processes_[added.pid()] = std::move(process);
  return added;
}

Thread& Registry::AddThread(Process& process, pid_t tid, Thread::Role role) {
  if (Thread* stale = FindThread(tid)) Remove(*stale);
  Thread& thread = process.AddThread(std::make_unique<Thread>(process, tid, role));
  threads_[tid] = &thread;
  return thread;
}

void Registry::Remove(Thread& thread) {
  thread.MarkGone();
  threads_.erase(thread.tid());
  dead_threads_.push_back(thread.process().RemoveThread(thread.tid()));
}

void Registry::Remove(Process& process) {
  while (!process.threads().empty())
    Remove(*process.threads().begin()->second);
  auto found = processes_.find(process.pid());
  if (found == processes_.end() || found->second.get() != &process) return;
  dead_processes_.push_back(std::move(found->second));
  processes_.erase(found);
}

void Registry::BuryDead() {
  dead_threads_.clear();
  dead_processes_.clear();
}

}  // namespace probed::tracee

#pragma once
// Every traced process and thread. Removed ones live on until BuryDead(), because callers up the
// stack may still hold references. Tracer thread only.

#include <sys/types.h>

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/tracee/process.h"
#include "engine/tracee/thread.h"

namespace probed::tracee {

class Registry {
 public:
  Process* FindProcess(pid_t pid) const;
  Thread* FindThread(pid_t tid) const;
  std::vector<Process*> processes() const;
  bool has_processes() const { return !processes_.empty(); }

  Process& Add(std::unique_ptr<Process> process);
  Thread& AddThread(Process& process, pid_t tid, Thread::Role role);
  void Remove(Thread& thread);
  void Remove(Process& process);
  void BuryDead();

  // A thread of a detached process that would not stop: it is detached at its next stop.
  void AddLeaving(pid_t tid) { leaving_.insert(tid); }
  bool TakeLeaving(pid_t tid) { return leaving_.erase(tid) != 0; }

 private:
  std::map<pid_t, std::unique_ptr<Process>> processes_;
  std::unordered_map<pid_t, Thread*> threads_;
  std::unordered_set<pid_t> leaving_;
  // Threads before processes: a dead thread refers to its process.
  std::vector<std::unique_ptr<Process>> dead_processes_;
  std::vector<std::unique_ptr<Thread>> dead_threads_;
};

}  // namespace probed::tracee

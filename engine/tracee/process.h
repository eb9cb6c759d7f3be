#pragma once
// One traced process: its threads, memory and code arena. Owned by the Tracer; tracer thread only.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/sys/process_memory.h"
#include "engine/tracee/code_arena.h"

namespace probed::tracee {

class Thread;

// What the layer above hangs on a process or a thread; destroyed with it.
class Extension {
 public:
  virtual ~Extension() = default;
};

class Process {
 public:
  pid_t pid() const { return pid_; }
  uint64_t start_ticks() const { return start_ticks_; }
  const sys::ProcessMemory& memory() const { return memory_; }
  CodeArena& arena() { return arena_; }
  bool under_seccomp() const { return under_seccomp_; }
  bool awaiting_exec() const { return awaiting_exec_; }
  const std::map<pid_t, std::unique_ptr<Thread>>& threads() const { return threads_; }
  std::string comm(pid_t tid) const;      // /proc/PID/task/TID/comm, cached until exec/prctl
  uint64_t max_stop_ns() const { return max_stop_ns_; }
  uint64_t total_stop_ns() const { return total_stop_ns_; }

  Extension* extension() const { return extension_.get(); }
  void set_extension(std::unique_ptr<Extension> extension) { extension_ = std::move(extension); }

 private:
  friend class Tracer;
  friend class Thread;
  Process(pid_t pid, uint64_t start_ticks, sys::ProcessMemory memory);
  pid_t pid_;
  uint64_t start_ticks_;
  sys::ProcessMemory memory_;
  CodeArena arena_;
  bool under_seccomp_ = false;
  bool awaiting_exec_ = false;
  bool follow_children_ = false;
  uint64_t max_stop_ns_ = 0;
  uint64_t total_stop_ns_ = 0;
  std::map<pid_t, std::unique_ptr<Thread>> threads_;
  std::unique_ptr<Extension> extension_;
};

}  // namespace probed::tracee

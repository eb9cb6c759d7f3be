#pragma once
// One traced process: its threads, memory and code arena. Owned by the Tracer; tracer thread only.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/sys/process_memory.h"
#include "engine/tracee/call_recorder.h"
#include "engine/tracee/code_arena.h"

namespace probed::tracee {

class StopSource;
class Thread;

// What the layer above hangs on a process or a thread; destroyed with it.
class Extension {
 public:
  virtual ~Extension() = default;
};

class Process {
 public:
  static Result<std::unique_ptr<Process>> Open(pid_t pid, StopSource& stops);
  ~Process();

  pid_t pid() const { return pid_; }
  uint64_t start_ticks() const { return start_ticks_; }
  const sys::ProcessMemory& memory() const { return memory_; }
  CodeArena& arena() { return arena_; }
  bool under_seccomp() const { return under_seccomp_; }
  bool awaiting_exec() const { return awaiting_exec_; }
  bool follow_children() const { return follow_children_; }
  const std::map<pid_t, std::unique_ptr<Thread>>& threads() const { return threads_; }
  // One that runs, or waits in the kernel, stops and goes on as if nothing had been: what it waits
  // for is looked at once more.
  void Wake(pid_t tid);
  std::string comm(pid_t tid) const;  // /proc/TID/comm, cached until exec; prctl is not seen
  uint64_t max_stop_ns() const { return max_stop_ns_; }
  uint64_t total_stop_ns() const { return total_stop_ns_; }

  Extension* extension() const { return extension_.get(); }
  void set_extension(std::unique_ptr<Extension> extension) { extension_ = std::move(extension); }

  void set_call_recorder(std::shared_ptr<CallRecorder> recorder) {
    call_recorder_ = std::move(recorder);
  }

  // The rest is for the files of engine/tracee.

  StopSource& stops() const { return stops_; }
  Thread& AddThread(std::unique_ptr<Thread> thread);
  // The caller keeps the thread for as long as something may still refer to it.
  std::unique_ptr<Thread> RemoveThread(pid_t tid);
  void set_awaiting_exec(bool awaiting) { awaiting_exec_ = awaiting; }
  void set_follow_children(bool follow) { follow_children_ = follow; }
  // Hold() when the first exec has been done.
  void HoldAtExec() { hold_at_exec_ = true; }
  // While held, every thread that stops stays stopped. Holds nest.
  void Hold() { ++holds_; }
  void Unhold() { --holds_; }
  bool held() const { return holds_ > 0; }

  // Its threads would not stop when they were last asked to.
  bool unresponsive() const { return unresponsive_; }
  void set_unresponsive(bool unresponsive) { unresponsive_ = unresponsive; }
  void CountStop(uint64_t nanoseconds);
  // After an exec: new memory, nothing of ours in it, names and seccomp state read anew.
  Status StartOver();
  // A forked child: memory is a copy of the parent's, blocks of ours included.
  void InheritFrom(const Process& parent);
  // True (and remembered) when `tid` is under seccomp.
  bool CheckSeccomp(pid_t tid);
  // Found once per image.
  Result<SyscallPlace> FindSyscallPlace();
  // Null: nobody.
  CallRecorder* call_recorder() const { return call_recorder_.get(); }

 private:
  Process(pid_t pid, uint64_t start_ticks, sys::ProcessMemory memory, StopSource& stops);
  const pid_t pid_;
  const uint64_t start_ticks_;
  sys::ProcessMemory memory_;
  StopSource& stops_;
  CodeArena arena_;
  bool under_seccomp_ = false;
  bool awaiting_exec_ = false;
  bool follow_children_ = false;
  bool hold_at_exec_ = false;
  bool unresponsive_ = false;
  int holds_ = 0;
  SyscallPlace syscall_place_;
  std::shared_ptr<CallRecorder> call_recorder_;
  mutable std::map<pid_t, std::string> comms_;
  uint64_t max_stop_ns_ = 0;
  uint64_t total_stop_ns_ = 0;
  std::map<pid_t, std::unique_ptr<Thread>> threads_;
  std::unique_ptr<Extension> extension_;
};

}  // namespace probed::tracee

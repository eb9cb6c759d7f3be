#pragma once
// Becoming the tracer of every thread of a process, without stopping any. Tracer thread only.

#include <sys/types.h>

#include <cstdint>

#include "base/result.h"
#include "engine/tracee/quiesce.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"

namespace probed::tracee {

// What every traced thread is traced with. No PTRACE_O_EXITKILL: targets outlive us.
uint64_t TraceOptions();

class Seizer {
 public:
  Seizer(Registry& registry, StopSource& stops, Quiescer& quiescer)
      : registry_(registry), stops_(stops), quiescer_(quiescer) {}

  // Every thread, and children that run in the same memory (vfork). An exec that is under way is
  // waited for. PROCESS_GONE also when an exec has ended all threads that were ours; DEADLINE; or
  // why the kernel refuses. What was taken before an error stays taken.
  Status SeizeAll(Process& process, uint64_t deadline_ns);

  // A task that runs in its memory and that nobody traces. False: it cannot be had, as one that is
  // ending, or in an exec.
  bool TakeStray(Process& process, pid_t task, Thread::Role role);

 private:
  enum class Outcome : uint8_t { kTaken, kPassedOver, kTryAgain };
  struct Round {
    size_t taken = 0;
    bool again = false;  // an exec is under way
  };

  Result<Round> SeizeNew(Process& process);
  Status SeizeSharers(Process& process, Round& round);
  Status Seize(Process& process, pid_t tid, Thread::Role role, Round& round);
  Status TakeRenamed(Process& process);
  // A dying thread, or one that is ours already, is passed over.
  Result<Outcome> TrySeize(pid_t pid, pid_t tid);
  // Whether the leader has become a thread that is not ours.
  Result<bool> DropReplacedLeader(Process& process);
  void ReapEnded(Process& process);

  Registry& registry_;
  StopSource& stops_;
  Quiescer& quiescer_;
  uint64_t believe_from_ns_ = 0;  // a refusal without a cause counts from then on,
  int refusals_ = 0;              // if there were enough before
};

}  // namespace probed::tracee

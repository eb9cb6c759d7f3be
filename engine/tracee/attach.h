#pragma once
// Becoming the tracer of a running process. Tracer thread only.

#include <chrono>

#include "base/result.h"
#include "engine/tracee/quiesce.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/seize.h"
#include "engine/tracee/stop_source.h"

namespace probed::tracee {

struct AttachRequest {
  pid_t pid = 0;
  bool follow_children = false;
  bool awaiting_exec = false;
  std::chrono::milliseconds deadline{5000};
};

class Attacher {
 public:
  Attacher(Registry& registry, StopSource& stops, Quiescer& quiescer)
      : registry_(registry),
        stops_(stops),
        quiescer_(quiescer),
        seizer_(registry, stops, quiescer) {}

  // Every thread, or an error and none.
  Result<Process*> Attach(const AttachRequest& request);
  // See Seizer.
  bool TakeStray(Process& process, pid_t task, Thread::Role role) {
    return seizer_.TakeStray(process, task, role);
  }
  // Stops all, leaves all. Threads that cannot be stopped now are left at their next stop.
  void LeaveStopped(Process& process);
  // Leaves all as soon as they stop. Nothing of ours is in the memory of the process any more.
  void GiveUp(Process& process);

 private:
  Result<Process*> AttachOnce(const AttachRequest& request, uint64_t deadline_ns);
  bool Revives(pid_t pid);
  bool IsReplaced(pid_t pid, const Error& error, uint64_t deadline_ns);

  Registry& registry_;
  StopSource& stops_;
  Quiescer& quiescer_;
  Seizer seizer_;
};

}  // namespace probed::tracee

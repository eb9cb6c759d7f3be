#pragma once
// Becoming the tracer of a running process. Tracer thread only.

#include <chrono>

#include "base/result.h"
#include "engine/tracee/quiesce.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"

namespace probed::tracee {

struct AttachRequest {
  pid_t pid = 0;
  bool follow_children = false;
  bool awaiting_exec = false;
  std::chrono::milliseconds deadline{5000};
};

// What every traced thread is traced with. No PTRACE_O_EXITKILL: targets outlive us.
uint64_t TraceOptions();

class Attacher {
 public:
  Attacher(Registry& registry, StopSource& stops, Quiescer& quiescer)
      : registry_(registry), stops_(stops), quiescer_(quiescer) {}

  // Every thread, or an error and none.
  Result<Process*> Attach(const AttachRequest& request);
  // Stops all, leaves all. Threads that cannot be stopped now are left at their next stop.
  void LeaveStopped(Process& process);
  // Leaves all as soon as they stop. Nothing of ours is in the memory of the process any more.
  void GiveUp(Process& process);

 private:
  Status SeizeAll(Process& process, uint64_t deadline_ns);
  Result<size_t> SeizeNew(Process& process);
  // Whether the thread was taken; one that is dying or already ours is passed over.
  Result<bool> SeizeThread(Process& process, pid_t tid);

  Registry& registry_;
  StopSource& stops_;
  Quiescer& quiescer_;
};

}  // namespace probed::tracee

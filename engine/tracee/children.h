#pragma once
// Threads and processes that traced threads make: who they are, whose memory they run in, and what
// the observer wants done with them. Tracer thread only.

#include <sys/types.h>

#include <map>
#include <string>

#include "engine/sys/wait_status.h"
#include "engine/tracee/observer.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"

namespace probed::tracee {

class Children {
 public:
  Children(Registry& registry, StopSource& stops, Observer& observer)
      : registry_(registry), stops_(stops), observer_(observer) {}

  // `parent` is in its event stop; the kernel has made `child` a tracee of ours. Waits for the
  // child's first stop, so that a child never outlives what is known of its parent.
  void Adopt(Thread& parent, pid_t child, sys::ChildKind kind);

  // The first stop of a child came before its parent's event.
  void KeepEarlyStop(const Stop& stop);
  // `process` is dying and can no longer report children that it made.
  void AdoptOrphansOf(Process& process);

  // A memory sharer has exec'ed: a process of its own, or none of our business any more.
  void LeaveParent(Thread& thread);
  // After an exec: the other threads of the process are dead, reported or not.
  void EndOtherThreads(Thread& survivor);

 private:
  void AddThread(Process& process, pid_t tid, Thread::Role role, bool follow_exec);
  void AddForked(Process& parent, pid_t child);
  void Place(Process& parent, pid_t parent_tid, pid_t child, sys::ChildKind kind);

  Registry& registry_;
  StopSource& stops_;
  Observer& observer_;
  std::map<pid_t, pid_t> early_parents_;  // child -> process that made it
};

}  // namespace probed::tracee

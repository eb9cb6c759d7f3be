#pragma once
// Turns one wait status into calls of the observer, and lets the thread go on. Tracer thread only.

#include <sys/types.h>

#include "engine/sys/wait_status.h"
#include "engine/tracee/children.h"
#include "engine/tracee/observer.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"
#include "engine/tracee/turns.h"

namespace probed::tracee {

class Dispatcher {
 public:
  Dispatcher(Registry& registry, StopSource& stops, Turns& turns, Observer& observer)
      : registry_(registry),
        turns_(turns),
        observer_(observer),
        children_(registry, stops, observer) {}

  void Handle(const Stop& stop);

 private:
  void On(Thread& thread, const sys::SignalStop& stop);
  void On(Thread& thread, const sys::InterruptStop& stop);
  void On(Thread& thread, const sys::GroupStop& stop);
  void On(Thread& thread, const sys::ChildStop& stop);
  void On(Thread& thread, const sys::ExecStop& stop);
  void On(Thread& thread, const sys::SyscallStop& stop);
  void On(Thread& thread, const sys::OtherStop& stop);
  void OnDeath(Thread& thread, int status);
  void HandleUnknown(const Stop& stop);
  void LetGo(const Stop& stop);
  void Leave(Thread& thread);
  bool WaitsForTurn(Thread& thread);

  Registry& registry_;
  Turns& turns_;
  Observer& observer_;
  Children children_;
};

// After a stop has been dealt with: the thread goes on, unless it is to be held.
void LeaveStop(Thread& thread);

}  // namespace probed::tracee

#pragma once
// Stopping one or all threads of a process, and letting them go on. While it waits, stops of all
// other threads are dealt with as ever. Every wait is bounded. Tracer thread only.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/tracee/dispatcher.h"
#include "engine/tracee/registry.h"
#include "engine/tracee/stop_source.h"
#include "engine/tracee/turns.h"

namespace probed::tracee {

class Quiescer {
 public:
  Quiescer(Registry& registry, StopSource& stops, Turns& turns, Dispatcher& dispatcher)
      : registry_(registry), stops_(stops), turns_(turns), dispatcher_(dispatcher) {}

  // One that is stopped already, else the one that stops first.
  Result<Thread*> StopOne(Process& process, uint64_t deadline_ns);
  void ReleaseOne(Thread& thread);

  // On success the process is held (Process::Hold). A thread in uninterruptible sleep is not waited
  // for: it stops before it runs another instruction of the program.
  Status StopAll(Process& process, uint64_t deadline_ns);
  // Undoes one StopAll().
  void ReleaseAll(Process& process);

  // Deals with at most one stop of any thread.
  void Pump(uint64_t deadline_ns);

  // Deals with the stops that these threads have reported; whether there were any.
  bool Sweep(const std::vector<pid_t>& tids);

 private:
  // One that would not stop is not waited for as long again.
  static uint64_t DeadlineFor(const Process& process, uint64_t deadline_ns);
  bool IsAlive(const Process& process) const;
  std::optional<Stop> NextInRound();
  void EndRound();

  Registry& registry_;
  StopSource& stops_;
  Turns& turns_;
  Dispatcher& dispatcher_;
};

}  // namespace probed::tracee

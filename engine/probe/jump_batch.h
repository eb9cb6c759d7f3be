#pragma once
// Puts jumps in the place of breakpoints, and back, for any number of sites of one process in one
// stop of all its threads. Tracer thread only.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/probe/detour_exit.h"
#include "engine/probe/jump_plan.h"
#include "engine/probe/process_state.h"
#include "engine/probe/return_handler.h"
#include "engine/sys/process_memory.h"
#include "engine/tracee/code_memory.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// No jump leads to them yet, so threads may run, unless `memory` needs a stopped one. Neighbours go
// out in one write.
Status WriteDetours(const sys::ProcessMemory& memory, pid_t stopped_tid,
                    const std::vector<std::shared_ptr<Optimization>>& ready);

class JumpBatch {
 public:
  JumpBatch(std::vector<tracee::Stopped*>& threads, ProcessState& state)
      : threads_(threads), state_(state) {}

  // THREADS_NOT_STOPPED: one is in uninterruptible sleep where bytes would change; nothing was
  // done. Otherwise all that is left in the plan is jumps. Detours are written already.
  // True: what was dropped may be possible soon.
  Result<bool> Optimize(JumpPlan& plan);
  // Breakpoints again; THREADS_NOT_STOPPED as above. Detours are retired (ProcessState).
  Status Unoptimize(std::span<Site* const> sites, const EvaluateRest& evaluate,
                    ReturnHandler& returns);

 private:
  Status CheckUnstopped(const std::function<bool(RemoteAddr)>& is_in_the_way) const;
  bool DropInterrupted(JumpPlan& plan) const;
  bool DropReturnedTo(JumpPlan& plan) const;
  void SampleByJump(const Optimization& optimization);
  void SampleByTrap(const Optimization& optimization);
  bool Enter(tracee::Stopped& thread, const Site& site, const Optimization& optimization);
  void EnterAll(std::vector<PlannedJump>& jumps, tracee::CodeMemory& code);
  void TakeReturnsOver(const EvaluateRest& evaluate, ReturnHandler& returns);
  void Leave(tracee::Stopped& thread, Site& site, const EvaluateRest& evaluate);

  std::vector<tracee::Stopped*>& threads_;
  ProcessState& state_;
};

}  // namespace probed::probe

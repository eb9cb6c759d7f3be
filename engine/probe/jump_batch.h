#pragma once
// Puts jumps in the place of breakpoints, and back, for any number of sites of one process in one
// stop of all its threads. Tracer thread only.

#include <functional>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/probe/detour_exit.h"
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
  // done. Otherwise what could not be optimized has an obstacle now, and its detour is given back.
  // Detours are written already.
  // True: that may change soon.
  Result<bool> Optimize(std::vector<std::shared_ptr<Optimization>> ready);
  // Breakpoints again; THREADS_NOT_STOPPED as above. Detours are retired (ProcessState).
  Status Unoptimize(std::span<Site* const> sites, const EvaluateRest& evaluate,
                    ReturnHandler& returns);

 private:
  using Ready = std::pair<Site*, std::shared_ptr<Optimization>>;
  Status CheckUnstopped(const std::function<bool(RemoteAddr)>& is_in_the_way) const;
  std::vector<Ready> Select(std::vector<std::shared_ptr<Optimization>> ready,
                            tracee::CodeMemory& code);
  void GiveUp(const std::shared_ptr<Optimization>& optimization, std::string why);
  bool DropInterrupted(std::vector<Ready>& ready);
  bool DropReturnedTo(std::vector<Ready>& ready);
  Status Journal(const Optimization& optimization);
  void SampleByJump(const Optimization& optimization);
  void SampleByTrap(const Optimization& optimization);
  bool Enter(tracee::Stopped& thread, const Site& site, const Optimization& optimization);
  std::unordered_set<const Site*> EnterAll(const std::vector<Ready>& selected);
  void TakeReturnsOver(const EvaluateRest& evaluate, ReturnHandler& returns);
  void Leave(tracee::Stopped& thread, Site& site, const EvaluateRest& evaluate);

  std::vector<tracee::Stopped*>& threads_;
  ProcessState& state_;
};

}  // namespace probed::probe

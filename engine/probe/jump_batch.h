#pragma once
// Puts jumps in the place of breakpoints, and back, for any number of sites of one process in one
// stop of all its threads. Tracer thread only.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/probe/detour_exit.h"
#include "engine/probe/process_state.h"
#include "engine/probe/return_handler.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class JumpBatch {
 public:
  JumpBatch(std::vector<tracee::Stopped*>& threads, ProcessState& state)
      : threads_(threads), state_(state) {}

  // THREADS_NOT_STOPPED: one is in uninterruptible sleep where bytes would change; nothing was
  // done. Otherwise what could not be optimized has an obstacle now, and its detour is given back.
  // True: that may change soon.
  Result<bool> Optimize(std::vector<std::shared_ptr<Optimization>> ready);
  // Breakpoints again; THREADS_NOT_STOPPED as above. `count_records`: see ProcessState::Release().
  Status Unoptimize(std::span<Site* const> sites, const EvaluateRest& evaluate,
                    ReturnHandler& returns, const std::function<void()>& count_records);

 private:
  using Ready = std::pair<Site*, std::shared_ptr<Optimization>>;
  Status CheckUnstopped(const std::function<bool(RemoteAddr)>& is_in_the_way) const;
  std::vector<Ready> Select(std::vector<std::shared_ptr<Optimization>> ready);
  void GiveUp(const std::shared_ptr<Optimization>& optimization, std::string why);
  bool DropReturnedTo(std::vector<Ready>& ready);
  Status WriteDetours(const std::vector<Ready>& ready);
  void Enter(tracee::Stopped& thread);
  void TakeReturnsOver(const EvaluateRest& evaluate, ReturnHandler& returns);
  void Leave(tracee::Stopped& thread, Site& site, const EvaluateRest& evaluate);

  std::vector<tracee::Stopped*>& threads_;
  ProcessState& state_;
};

}  // namespace probed::probe

#include "engine/probe/detour_exit.h"

#include "engine/arch/x86_64/region.h"
#include "engine/detour/leave.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {

bool FinishHit(tracee::Stopped& stopped, ProcessState& state, Site& site,
               const EvaluateRest& evaluate) {
  const Optimization& optimization = *site.optimization();
  if (optimization.island() == RemoteAddr{stopped.regs().rip}) {
    stopped.mutable_regs().rip = optimization.buffer.value;
  }
  uint64_t buffer = optimization.buffer.value;
  StoppedMemoryBus memory(stopped);
  auto location = detour::Locate(optimization.detour, buffer, stopped.regs());
  if (!location || location->phase == detour::Phase::kDisplaced) return true;
  if (location->reservation) state.ring->Abandon(*location->reservation);
  user_regs_struct regs = stopped.regs();
  if (!detour::Unwind(optimization.detour, buffer, site.address().value, regs, memory))
    return false;
  stopped.mutable_regs() = regs;
  evaluate(stopped, state, site, location->recorded);
  stopped.mutable_regs().rip = optimization.displaced().value;
  return true;
}

user_regs_struct WithoutDetour(tracee::Stopped& stopped, const Optimization& optimization) {
  user_regs_struct regs = stopped.regs();
  arch::LeaveRegionCopy(optimization.detour.region, optimization.region, optimization.site.value,
                        optimization.displaced().value, regs);
  return regs;
}

}  // namespace probed::probe

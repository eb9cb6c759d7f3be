#include "engine/probe/detour_exit.h"

#include "engine/arch/x86_64/region.h"
#include "engine/detour/leave.h"
#include "engine/probe/routines.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {

namespace {

// The frame is in the shadow stack already: only its slot has to be written.
bool FinishHijack(tracee::Stopped& stopped, const Optimization& optimization, RemoteAddr ip) {
  const detour::Detour& code = optimization.detour;
  uint64_t offset = ip - optimization.buffer;
  if (optimization.returns.empty() || offset < code.pushed ||
      offset >= code.blocks.back().committed) {
    return false;
  }
  uint64_t trampoline = optimization.trampoline.value;
  auto bytes = std::as_bytes(std::span(&trampoline, 1));
  return stopped.WriteMemory(RemoteAddr{stopped.regs().rsp}, bytes).ok();
}

}  // namespace

bool FinishHit(tracee::Stopped& stopped, ProcessState& state, Site& site,
               const EvaluateRest& evaluate) {
  const Optimization& optimization = *site.optimization();
  if (optimization.island() == RemoteAddr{stopped.regs().rip}) {
    stopped.mutable_regs().rip = optimization.buffer.value;
  }
  uint64_t buffer = optimization.buffer.value;
  OwnFrameBus memory(stopped);
  user_regs_struct regs = RegsInDetour(stopped, state);
  auto location = detour::Locate(optimization.detour, buffer, regs);
  if (!location || location->phase == detour::Phase::kDisplaced) return true;
  if (location->reservation) state.ring->Abandon(*location->reservation);
  RemoteAddr ip{regs.rip};
  if (!detour::Unwind(optimization.detour, buffer, site.address().value, regs, memory))
    return false;
  stopped.mutable_regs() = regs;
  if (!FinishHijack(stopped, optimization, ip)) {
    evaluate(stopped, state, site, location->recorded);
  }
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

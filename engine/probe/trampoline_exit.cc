#include "engine/probe/trampoline_exit.h"

#include "engine/detour/leave.h"
#include "engine/probe/routines.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {
namespace {

// The word that `ret` has just taken off.
uint64_t SlotOf(const user_regs_struct& regs) {
  return regs.rsp - sizeof(uint64_t);
}

// The trampoline has put there where the thread goes on.
bool FollowSlot(tracee::Stopped& stopped) {
  uint64_t word = 0;
  auto bytes = std::as_writable_bytes(std::span(&word, 1));
  if (!stopped.ReadMemory(RemoteAddr{SlotOf(stopped.regs())}, bytes).ok()) return false;
  stopped.mutable_regs().rip = word;
  return true;
}

}  // namespace

bool FinishReturn(tracee::Stopped& stopped, ProcessState& state, const Optimization& optimization,
                  const RecordRest& record) {
  uint64_t buffer = optimization.trampoline.value;
  user_regs_struct regs = RegsInDetour(stopped, state);
  auto location = detour::Locate(optimization.returning, buffer, regs);
  if (!location) return false;
  if (location->phase == detour::Phase::kDisplaced) return FollowSlot(stopped);
  if (location->reservation) state.ring->Abandon(*location->reservation);
  OwnFrameBus memory(stopped);
  if (!detour::Unwind(optimization.returning, buffer, buffer, regs, memory)) return false;
  stopped.mutable_regs() = regs;
  if (location->recorded > optimization.returns.size()) return FollowSlot(stopped);
  auto taken = TakeFrame(stopped, state, SlotOf(regs));
  if (!taken) return false;
  if (taken->foreign) state.stacks_migrate = true;
  record(stopped, state, optimization, taken->frame, location->recorded);
  stopped.mutable_regs().rip = taken->frame.next;
  return true;
}

}  // namespace probed::probe

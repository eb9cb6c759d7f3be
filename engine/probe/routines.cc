#include "engine/probe/routines.h"

#include <span>
#include <vector>

#include "engine/detour/leave.h"
#include "engine/detour/string_routines.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {

Status PlaceRoutines(tracee::Stopped& stopped, ProcessState& state) {
  if (state.routines.value != 0) return {};
  const std::vector<uint8_t>& code = detour::TheStringRoutines().code;
  tracee::CodeArena& arena = state.process.arena();
  tracee::Window anywhere = tracee::Window::Around(RemoteAddr{stopped.regs().rip});
  PROBED_TRY(RemoteAddr place, arena.Allocate(stopped, anywhere, code.size()));
  Status written = stopped.WriteMemory(place, std::as_bytes(std::span(code)));
  if (written.ok()) {
    state.routines = place;
  } else {
    arena.Free(place, code.size());
  }
  return written;
}

bool InRoutines(const ProcessState& state, RemoteAddr ip) {
  return detour::InRoutines(state.routines.value, ip.value);
}

user_regs_struct RegsInDetour(tracee::Stopped& stopped, const ProcessState& state) {
  user_regs_struct regs = stopped.regs();
  OwnFrameBus memory(stopped);
  (void)detour::LeaveRoutine(state.routines.value, regs, memory);
  return regs;
}

RemoteAddr IpInDetour(tracee::Stopped& stopped, const ProcessState& state) {
  return RemoteAddr{RegsInDetour(stopped, state).rip};
}

RemoteAddr IpInDetour(const sys::SleepingPlace& place, const ProcessState& state) {
  uint64_t behind_call = 0;
  auto word = std::as_writable_bytes(std::span(&behind_call, 1));
  if (!InRoutines(state, place.ip) || !state.process.memory().Read(place.sp, word).ok())
    return place.ip;
  return RemoteAddr{behind_call - 1};
}

std::optional<RemoteAddr> FixUpInRoutines(const ProcessState& state, RemoteAddr ip) {
  auto resume = detour::FixUpInRoutines(state.routines.value, ip.value);
  return resume ? std::optional(RemoteAddr{*resume}) : std::nullopt;
}

}  // namespace probed::probe

#include "engine/probe/signal_action.h"

#include <sys/syscall.h>

#include <csignal>
#include <span>

#include "engine/sys/signal.h"
#include "engine/tracee/remote_call.h"

namespace probed::probe {

// rt_sigaction(2) in the program, with both structures on its stack below the red zone, whose bytes
// are put back.
std::optional<SignalAction> ExchangeAction(tracee::Stopped& stopped, int signal,
                                           const SignalAction* action) {
  struct Scratch {
    SignalAction set, old;
  } scratch{}, before{};
  constexpr uint64_t kRedZone = 128;
  static_assert(sizeof scratch + 15 <= tracee::kRoomOnStack);
  RemoteAddr place{(stopped.regs().rsp - kRedZone - sizeof scratch) & ~uint64_t{15}};
  if (action != nullptr) scratch.set = *action;
  auto bytes = std::as_writable_bytes(std::span(&scratch, 1));
  auto saved = std::as_writable_bytes(std::span(&before, 1));
  if (!stopped.ReadMemory(place, saved).ok() || !stopped.WriteMemory(place, bytes).ok()) return {};
  uint64_t set = action != nullptr ? place.value : 0;
  uint64_t old = place.value + sizeof(SignalAction);
  auto called = tracee::RemoteSyscall(
      stopped, SYS_rt_sigaction, {static_cast<uint64_t>(signal), set, old, sizeof(uint64_t), 0, 0});
  bool read = stopped.ReadMemory(place, bytes).ok();
  (void)stopped.WriteMemory(place, saved);
  if (!called.ok() || !read) return {};
  return scratch.old;
}

bool LooksFull(uint64_t mask, int signal) {
  constexpr uint64_t kClassic = (uint64_t{1} << 31) - 1;
  constexpr uint64_t kNeverBlocked = sys::SignalBit(SIGKILL) | sys::SignalBit(SIGSTOP);
  return ((mask | sys::SignalBit(signal) | kNeverBlocked) & kClassic) == kClassic;
}

}  // namespace probed::probe

#include "engine/probe/trap_signal.h"

#include <sys/syscall.h>

#include <array>
#include <csignal>
#include <optional>
#include <span>

#include "engine/sys/proc.h"
#include "engine/sys/signal.h"
#include "engine/tracee/remote_call.h"

namespace probed::probe {
namespace {

using sys::SignalBit;

constexpr uint64_t kTrap = SignalBit(SIGTRAP);
constexpr uint64_t kIgnore = 1;  // SIG_IGN

bool LooksFull(uint64_t mask) {
  constexpr uint64_t kClassic = (uint64_t{1} << 31) - 1;
  constexpr uint64_t kNeverBlocked = SignalBit(SIGKILL) | SignalBit(SIGSTOP);
  return ((mask | kTrap | kNeverBlocked) & kClassic) == kClassic;
}

// rt_sigaction(2) in the program, with both structures on its stack below the red zone, whose bytes
// are put back.
std::optional<TrapAction> ExchangeAction(tracee::Stopped& stopped, const TrapAction* action) {
  struct Scratch {
    TrapAction set, old;
  } scratch{}, before{};
  constexpr uint64_t kRedZone = 128;
  RemoteAddr place{(stopped.regs().rsp - kRedZone - sizeof scratch) & ~uint64_t{15}};
  if (action != nullptr) scratch.set = *action;
  auto bytes = std::as_writable_bytes(std::span(&scratch, 1));
  auto saved = std::as_writable_bytes(std::span(&before, 1));
  if (!stopped.ReadMemory(place, saved).ok() || !stopped.WriteMemory(place, bytes).ok()) return {};
  uint64_t set = action != nullptr ? place.value : 0;
  uint64_t old = place.value + sizeof(TrapAction);
  auto called =
      tracee::RemoteSyscall(stopped, SYS_rt_sigaction, {SIGTRAP, set, old, sizeof(uint64_t), 0, 0});
  bool read = stopped.ReadMemory(place, bytes).ok();
  (void)stopped.WriteMemory(place, saved);
  if (!called.ok() || !read) return {};
  return scratch.old;
}

bool IsHandled(const ProcessState& state) {
  return state.trap_action && state.trap_action->handler != kIgnore;
}

bool HasHandler(pid_t pid) {
  auto status = sys::ReadTaskStatus(pid);
  return status.ok() && (status->caught & kTrap) != 0;
}

}  // namespace

void LookAtTrapAction(tracee::Stopped& stopped, ProcessState& state) {
  auto status = sys::ReadTaskStatus(stopped.tid());
  if (!status.ok()) return;
  bool is_default = ((status->ignored | status->caught) & kTrap) == 0;
  // One that is ignored looks like the default after the first trap.
  if (is_default && state.trap_action && state.trap_action->handler == kIgnore) return;
  state.trap_action = is_default ? std::nullopt : ExchangeAction(stopped, nullptr);
}

void LookAtTrapMask(tracee::Thread& thread) {
  auto status = sys::ReadTaskStatus(thread.tid());
  if (status.ok()) ThreadState::Of(thread).signal_mask = status->blocked;
}

bool MayLoseTrapSignal(tracee::Thread& thread, const ProcessState& state) {
  const auto& mask = ThreadState::Of(thread).signal_mask;
  return IsHandled(state) || !mask || (*mask & kTrap) != 0;
}

void KeepTrapSignal(tracee::Stopped& stopped, ProcessState& state) {
  auto mask = stopped.ReadSignalMask();
  if (!mask) return;
  ThreadState& thread = ThreadState::Of(stopped.thread());
  bool has_handler = IsHandled(state);
  bool was_blocked = LooksFull(*mask) || (thread.signal_mask && *thread.signal_mask != *mask &&
                                          *thread.signal_mask == (*mask | kTrap));
  // Had it been blocked, the kernel would have taken the handler away.
  if (was_blocked && has_handler) was_blocked = !HasHandler(stopped.tid());
  if (was_blocked) stopped.WriteSignalMask(*mask | kTrap);
  thread.signal_mask = was_blocked ? *mask | kTrap : *mask;
  if (was_blocked && has_handler) (void)ExchangeAction(stopped, &*state.trap_action);
}

bool RestoreFullMask(tracee::Stopped& stopped) {
  auto mask = stopped.ReadSignalMask();
  if (!mask || !LooksFull(*mask)) return false;
  if ((*mask & kTrap) == 0) stopped.WriteSignalMask(*mask | kTrap);
  ThreadState::Of(stopped.thread()).signal_mask = *mask | kTrap;
  return true;
}

bool IgnoresTraps(ProcessState& state) {
  if (!state.trap_action || state.trap_action->handler != kIgnore) return false;
  if (HasHandler(state.id.pid)) state.trap_action.reset();  // it has changed its mind
  return state.trap_action.has_value();
}

void IgnoreTrapsAgain(tracee::Stopped& stopped, ProcessState& state) {
  if (IgnoresTraps(state)) (void)ExchangeAction(stopped, &*state.trap_action);
}

}  // namespace probed::probe

#include "engine/probe/trap_signal.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "elf/file.h"
#include "engine/probe/process_signal.h"
#include "engine/probe/signal_action.h"
#include "engine/sys/awaited_signal.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

using sys::SignalBit;

constexpr uint64_t kTrap = SignalBit(SIGTRAP);

bool IsHandled(const ProcessState& state) {
  return state.trap_action && state.trap_action->handler != kIgnoreSignal;
}

// Of a program that uses SIGTRAP itself.
constexpr uint64_t kYieldNs = 100'000'000;
// Whoever waits for it does so again within this time.
constexpr uint64_t kAwaitNs = 100'000'000;
// No more than a tenth of the time goes to putting the handler in place again.
constexpr uint64_t kLeastRepairIntervalNs = 1'000'000;
constexpr uint64_t kRepairShare = 9;

bool HasHandler(pid_t pid) {
  auto status = sys::ReadTaskStatus(pid);
  return status.ok() && (status->caught & kTrap) != 0;
}

// A child that shares the memory only has handlers of its own.
bool SharesHandlers(const tracee::Stopped& stopped) {
  return stopped.thread().role() != tracee::Thread::Role::kMemorySharer;
}

// A trap in a thread that blocks SIGTRAP has put the default action in place. It would do so again
// with its next hit; once a thread that does not block it comes by, KeepRescue() repairs that.
void NoteLostRescue(const tracee::Stopped& stopped, ProcessState& state) {
  if (!state.rescue.installed || !SharesHandlers(stopped)) return;
  state.rescue.installed = HasHandler(stopped.tid());
}

// Go's runtime never asks which action was there before its own. Other programs may save ours and
// put it back while we are there or when we have left.
bool MayReplaceHandler(ProcessState& state) {
  if (!state.runs_go) {
    auto file = elf::File::Open(sys::ProcPath(state.id.pid, "exe"));
    state.runs_go = file.ok() && (*file)->is_go();
  }
  return *state.runs_go;
}

// The program may have set another action since we looked. The default one is no news: a trap of a
// thread that blocks the signal brings it about, too.
void NoteReplaced(tracee::Stopped& stopped, ProcessState& state, const SignalAction& replaced) {
  if (replaced.handler == 0 || replaced.handler == state.rescue.Action().handler) return;
  if (state.trap_action && state.trap_action->handler == replaced.handler) return;
  state.trap_action = replaced;
  if (replaced.handler == kIgnoreSignal || !MayReplaceHandler(state)) {
    state.rescue.NoteSaved(stopped);
    return RemoveRescue(stopped, state);
  }
  (void)state.rescue.SetProgramsAction(stopped, state.trap_action);
}

void RestoreHandler(tracee::Stopped& stopped, const ProcessState& state) {
  SignalAction action = state.rescue.installed ? state.rescue.Action() : *state.trap_action;
  (void)ExchangeAction(stopped, SIGTRAP, &action);
}

// Blocks all other signals. It may do so on purpose: then it did when we looked, or a handler, ours
// or the program's, still stands, which a trap that was blocked would have taken away.
bool IsWithoutItsTrap(const tracee::Stopped& stopped, uint64_t mask) {
  if ((mask & kTrap) != 0 || !LooksFull(mask, SIGTRAP)) return false;
  return ThreadState::Of(stopped.thread()).signal_mask != mask && !HasHandler(stopped.tid());
}

// Whether another thread is known to block what this one does, and SIGTRAP.
bool HasSiblingThatBlocks(const tracee::Stopped& stopped, uint64_t mask) {
  if ((mask & kTrap) != 0 || LooksFull(mask, SIGTRAP)) return false;
  const auto& threads = stopped.process().threads();
  return std::any_of(threads.begin(), threads.end(), [&](const auto& each) {
    return ThreadState::Of(*each.second).signal_mask == (mask | kTrap);
  });
}

// A new thread blocks all signals until the C library has given it the mask of the one that made
// it. That is not seen, but others that it may have come from are known.
bool HasInheritedBlock(const tracee::Stopped& stopped, uint64_t mask) {
  const auto& seen = ThreadState::Of(stopped.thread()).signal_mask;
  return seen && LooksFull(*seen, SIGTRAP) && HasSiblingThatBlocks(stopped, mask);
}

// A trap has found the signal blocked since our handler was put in place, and it was no thread of
// which we knew.
bool FindUnseenBlock(const tracee::Stopped& stopped, ProcessState& state) {
  if (state.trap_action || !state.rescue.installed) return false;
  if (!SharesHandlers(stopped) || MayReplaceHandler(state)) return false;
  NoteLostRescue(stopped, state);
  state.has_unseen_blocks |= !state.rescue.installed;
  return !state.rescue.installed;
}

// One that was sent to the thread alone is for nobody else.
bool MayHaveUnseenBlock(tracee::Stopped& stopped, ProcessState& state) {
  (void)FindUnseenBlock(stopped, state);
  return state.has_unseen_blocks && !state.nobody_awaits_traps && !IsHandled(state) &&
         SharesHandlers(stopped) && stopped.signal_info().si_code != SI_TKILL;
}

// A call that waits, and not for signals: whoever is in it will not wait for one soon.
bool IsInCall(const user_regs_struct& regs) {
  constexpr int64_t kLastRestart = -516, kFirstRestart = -512;  // include/linux/errno.h
  const auto result = static_cast<int64_t>(regs.rax);
  const auto call = static_cast<int64_t>(regs.orig_rax);
  const bool is_interrupted =
      result == -EINTR || (result >= kLastRestart && result <= kFirstRestart);
  return call >= 0 && call != SYS_rt_sigtimedwait && is_interrupted;
}

bool BlockAgain(tracee::Stopped& stopped) {
  auto mask = stopped.ReadSignalMask();
  if (!mask || (*mask & kTrap) != 0) return false;
  stopped.WriteSignalMask(*mask | kTrap);
  ThreadState::Of(stopped.thread()).signal_mask = *mask | kTrap;
  ThreadState::Of(stopped.thread()).trap_looked_at_since_ns = 0;
  return true;
}

// One that was sent to the process is still there, and nobody waits for it.
bool IsForNobody(const tracee::Stopped& stopped, const ProcessState& state) {
  return sys::HasPendingSignal(stopped.tid(), SIGTRAP, sys::SignalQueue::kProcess) &&
         !sys::AwaitsSignal(state.id.pid, SIGTRAP);
}

// `present`: in the place of ours. The default action is the work of a blocked trap.
void NoteSaved(tracee::Stopped& stopped, ProcessState& state, const SignalAction& present) {
  if (present.handler == 0 || present.handler == state.rescue.Action().handler) return;
  state.rescue.NoteSaved(stopped);
}

}  // namespace

void InstallRescue(tracee::Stopped& stopped, ProcessState& state) {
  if (!state.rescue.prepared() || state.rescue.installed || IgnoresTraps(state)) return;
  if (state.trap_action && !MayReplaceHandler(state)) return;
  if (!state.rescue.SetProgramsAction(stopped, state.trap_action).ok()) return;
  if (!state.rescue.SetFormerAction(stopped, state.trap_action).ok()) return;
  SignalAction action = state.rescue.Action();
  auto replaced = ExchangeAction(stopped, SIGTRAP, &action);
  state.rescue.installed = replaced.has_value();
  if (replaced) NoteReplaced(stopped, state, *replaced);
}

void RemoveRescue(tracee::Stopped& stopped, ProcessState& state) {
  if (!std::exchange(state.rescue.installed, false)) return;
  auto present = ExchangeAction(stopped, SIGTRAP, nullptr);
  if (!present) return;
  NoteSaved(stopped, state, *present);
  if (present->handler != state.rescue.Action().handler) {
    if (present->handler != 0) state.trap_action = present;
    return;
  }
  SignalAction programs = state.trap_action.value_or(SignalAction{});
  (void)ExchangeAction(stopped, SIGTRAP, &programs);
}

void YieldToProgram(tracee::Stopped& stopped, ProcessState& state) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  // A look is a system call, after which the signal is sent again, and comes here once more.
  bool looked = std::exchange(thread.trap_is_sent_again, false);
  RemoveRescue(stopped, state);
  state.rescue_next_ns = MonotonicNow() + kYieldNs;
  if (!looked && !IsHandled(state)) thread.trap_is_sent_again = LookAtTrapAction(stopped, state);
  auto mask = stopped.ReadSignalMask();
  if (!mask || !IsHandled(state)) return;
  uint64_t in_handler = *mask | state.trap_action->mask;
  if ((state.trap_action->flags & SA_NODEFER) == 0) in_handler |= kTrap;
  thread.signal_mask = in_handler;
}

void KeepRescue(tracee::Stopped& stopped, ProcessState& state) {
  if (state.rescue.installed || !state.rescue.prepared() || state.leaving) return;
  if (!SharesHandlers(stopped)) return;
  const auto& mask = ThreadState::Of(stopped.thread()).signal_mask;
  const uint64_t begin = MonotonicNow();
  if (begin < state.rescue_next_ns || (mask && (*mask & kTrap) != 0)) return;
  InstallRescue(stopped, state);
  const uint64_t end = MonotonicNow();
  state.rescue_next_ns = end + std::max(kLeastRepairIntervalNs, kRepairShare * (end - begin));
}

bool LookAtTrapAction(tracee::Stopped& stopped, ProcessState& state) {
  auto status = sys::ReadTaskStatus(stopped.tid());
  if (!status.ok()) return false;
  bool is_default = ((status->ignored | status->caught) & kTrap) == 0;
  // One that is ignored looks like the default after the first trap.
  if (is_default && state.trap_action && state.trap_action->handler == kIgnoreSignal) return false;
  state.trap_action = is_default ? std::nullopt : ExchangeAction(stopped, SIGTRAP, nullptr);
  if (state.rescue.installed && state.trap_action) NoteSaved(stopped, state, *state.trap_action);
  state.rescue.installed = state.rescue.prepared() && state.trap_action &&
                           state.trap_action->handler == state.rescue.Action().handler;
  if (state.rescue.installed) {
    state.trap_action = state.rescue.ProgramsAction(stopped.process().memory());
  }
  return !is_default;
}

void LookAtTrapMask(tracee::Thread& thread) {
  auto status = sys::ReadTaskStatus(thread.tid());
  if (status.ok()) ThreadState::Of(thread).signal_mask = status->blocked;
}

bool MayLoseTrapSignal(tracee::Thread& thread, const ProcessState& state) {
  const auto& mask = ThreadState::Of(thread).signal_mask;
  return IsHandled(state) || !mask || (*mask & kTrap) != 0;
}

bool HasLostBlock(tracee::Stopped& stopped) {
  auto mask = stopped.ReadSignalMask();
  return mask && IsWithoutItsTrap(stopped, *mask);
}

void KeepTrapSignal(tracee::Stopped& stopped, ProcessState& state) {
  auto mask = stopped.ReadSignalMask();
  if (!mask) return;
  ThreadState& thread = ThreadState::Of(stopped.thread());
  bool has_handler = IsHandled(state);
  bool was_blocked = IsWithoutItsTrap(stopped, *mask) || HasInheritedBlock(stopped, *mask) ||
                     (thread.signal_mask && *thread.signal_mask != *mask &&
                      *thread.signal_mask == (*mask | kTrap));
  // Had it been blocked, the kernel would have taken the handler away.
  if (was_blocked && has_handler) was_blocked = !HasHandler(stopped.tid());
  if (was_blocked) stopped.WriteSignalMask(*mask | kTrap);
  thread.signal_mask = was_blocked ? *mask | kTrap : *mask;
  if (was_blocked && has_handler) RestoreHandler(stopped, state);
  if (was_blocked && !has_handler) NoteLostRescue(stopped, state);
  if (was_blocked) LetOthersTake(stopped, SIGTRAP);
}

bool RestoreFullMask(tracee::Stopped& stopped) {
  auto mask = stopped.ReadSignalMask();
  if (!mask || !LooksFull(*mask, SIGTRAP)) return false;
  if ((*mask & kTrap) == 0) {
    if (!IsWithoutItsTrap(stopped, *mask)) return false;
    stopped.WriteSignalMask(*mask | kTrap);
  }
  ThreadState::Of(stopped.thread()).signal_mask = *mask | kTrap;
  return true;
}

bool RestoreUnseenBlock(tracee::Stopped& stopped, ProcessState& state) {
  if (!MayHaveUnseenBlock(stopped, state)) return false;
  const bool is_awaited = sys::AwaitsSignal(state.id.pid, SIGTRAP);
  if (!is_awaited && IsInCall(stopped.regs())) return false;
  if (!BlockAgain(stopped)) return false;
  if (!is_awaited) state.kept_trap = KeptTrap{stopped.tid(), stopped.signal_info(), MonotonicNow()};
  return true;
}

void DeliverKeptTrap(tracee::Stopped& stopped, ProcessState& state) {
  if (!state.kept_trap || !SharesHandlers(stopped)) return;
  const bool waits = IsForNobody(stopped, state);
  if (waits && MonotonicNow() - state.kept_trap->since_ns < kAwaitNs) return;
  const KeptTrap kept = *std::exchange(state.kept_trap, std::nullopt);
  auto mask = stopped.ReadSignalMask();
  if (!waits || !mask) return;
  state.nobody_awaits_traps = true;
  stopped.WriteSignalMask(*mask & ~kTrap);
  ThreadState::Of(stopped.thread()).signal_mask = *mask & ~kTrap;
  stopped.DeferSignal(kept.info);
}

bool MayBeAwaited(tracee::Stopped& stopped, ProcessState& state) {
  if (!MayHaveUnseenBlock(stopped, state)) return false;
  const uint64_t now = MonotonicNow();
  auto& since = ThreadState::Of(stopped.thread()).trap_looked_at_since_ns;
  if (since == 0) since = now;
  return now - since < kAwaitNs;
}

void RestoreBlockOfLeft(tracee::Stopped& stopped, const ProcessState& state) {
  if (RestoreFullMask(stopped) || !state.has_unseen_blocks || IsHandled(state)) return;
  auto mask = stopped.ReadSignalMask();
  // Nobody has come to wait, and nobody would judge that any more.
  const bool is_kept = state.kept_trap && state.kept_trap->tid == stopped.tid();
  if (mask && is_kept && IsForNobody(stopped, state)) {
    return stopped.WriteSignalMask(*mask & ~kTrap);
  }
  if (mask && HasSiblingThatBlocks(stopped, *mask)) stopped.WriteSignalMask(*mask | kTrap);
}

bool HasLetIn(tracee::Stopped& stopped, ProcessState& state) {
  auto mask = stopped.ReadSignalMask();
  if (!mask || (*mask & kTrap) != 0) return false;
  const auto& seen = ThreadState::Of(stopped.thread()).signal_mask;
  // A handler, in which the signal is blocked, may have returned since; but a trap takes it away.
  if (IsHandled(state) && HasHandler(stopped.tid())) return false;
  if (seen && (*seen & kTrap) != 0) return true;
  // Sent to the thread, it can have waited there. The latest trap may have been another's, though.
  if (stopped.signal_info().si_code != SI_TKILL || !FindUnseenBlock(stopped, state)) return false;
  return BlockAgain(stopped);
}

bool IgnoresTraps(ProcessState& state) {
  if (!state.trap_action || state.trap_action->handler != kIgnoreSignal) return false;
  if (HasHandler(state.id.pid)) state.trap_action.reset();  // it has changed its mind
  return state.trap_action.has_value();
}

void IgnoreTrapsAgain(tracee::Stopped& stopped, ProcessState& state) {
  if (IgnoresTraps(state)) (void)ExchangeAction(stopped, SIGTRAP, &*state.trap_action);
}

}  // namespace probed::probe

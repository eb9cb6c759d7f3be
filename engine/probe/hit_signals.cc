// HitHandler: signals that meet a thread in code of ours.

#include "engine/arch/x86_64/eflags.h"
#include "engine/detour/leave.h"
#include "engine/probe/fault_signal.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/routines.h"
#include "engine/probe/signal_info.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

using tracee::Resumption;
using How = tracee::Resumption::How;

// A timer that fires faster than a step takes would keep the thread from ever taking one. What the
// instructions themselves may raise is let in.
void KeepSignalsAway(tracee::Stopped& stopped) {
  constexpr uint64_t kRaised = sys::SignalBit(SIGTRAP) | sys::SignalBit(SIGSEGV) |
                               sys::SignalBit(SIGBUS) | sys::SignalBit(SIGFPE) |
                               sys::SignalBit(SIGILL);
  ThreadState& thread = ThreadState::Of(stopped.thread());
  if (thread.mask_before_steps) return;
  thread.mask_before_steps = stopped.ReadSignalMask();
  if (thread.mask_before_steps) stopped.WriteSignalMask(*thread.mask_before_steps | ~kRaised);
}

}  // namespace

Resumption HitHandler::DeliverHeld(tracee::Stopped& stopped, ProcessState& state) {
  auto& held = ThreadState::Of(stopped.thread()).held_signals;
  if (held.empty()) return GoOn(state);
  siginfo_t first = held.front();
  // Were we to die before the step's SIGTRAP is replaced, the program would get one that looks
  // sent, because its siginfo is another signal's (kernel/signal.c, ptrace_signal).
  stopped.Settle();
  stopped.SetSignalInfo(first);
  return DeliverInOrder(stopped, state, std::exchange(held, {}));
}

// Behind what was held back, or a real-time signal would overtake another of its number; but a
// fault is of the instruction that the thread stands at.
Resumption HitHandler::Deliver(tracee::Stopped& stopped, ProcessState& state,
                               const siginfo_t& info) {
  auto signals = std::exchange(ThreadState::Of(stopped.thread()).held_signals, {});
  bool is_first = signals.empty() || IsFault(info);
  signals.insert(is_first ? signals.begin() : signals.end(), info);
  if (!is_first) stopped.SetSignalInfo(signals.front());
  return DeliverInOrder(stopped, state, signals);
}

// The first is that of the stop.
Resumption HitHandler::DeliverInOrder(tracee::Stopped& stopped, ProcessState& state,
                                      const std::vector<siginfo_t>& signals) {
  // A return was the last of the steps.
  if (state.sites.FindByTrampoline(RemoteAddr{stopped.regs().rip}) != nullptr) {
    (void)returns_.LeaveTrampoline(stopped, state);
  }
  for (size_t i = 1; i < signals.size(); ++i)
    stopped.DeferSignal(signals[i]);
  return {.how = GoOn(state).how, .signal = signals.front().si_signo};
}

// A signal that comes between a hit and its instruction waits for the instruction, as under the
// kernel's uprobes (kernel/events/uprobes.c, uprobe_deny_signal). Otherwise the hit would have to
// be told from its repetition after the handler, which nothing proves where stacks move (Go). Not
// for system calls, which may block; a second signal meanwhile takes the thread out after all.
bool HitHandler::FinishFirst(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  RemoteAddr ip{stopped.regs().rip};
  const Site* site = state.sites.FindByCopy(ip);
  if (IsFault(info) || !thread.held_signals.empty() || site == nullptr) return false;
  if (site->instruction().is_syscall || !site->NotExecuted(ip)) return false;
  thread.held_signals.push_back(info);
  thread.stepping = site->address();
  return true;
}

// Whoever has called it: the stack, which would tell, may not be for us to read.
bool HitHandler::GoOnInRoutine(tracee::Stopped& stopped, ProcessState& state,
                               const siginfo_t& info) {
  auto fix_up = FixUpInRoutines(state, RemoteAddr{stopped.regs().rip});
  if (!fix_up || !IsFault(info) || IsMisaligned(info)) return false;
  stopped.mutable_regs().rip = fix_up->value;
  KeepFaultSignal(stopped, state, info.si_signo);
  return true;
}

Resumption HitHandler::OnSignal(tracee::Stopped& stopped, ProcessState& state,
                                const siginfo_t& info) {
  if (GoOnInRoutine(stopped, state, info)) return GoOn(state);
  if (Site* site = state.sites.FindByDetour(IpInDetour(stopped, state))) {
    return OnSignalInDetour(stopped, state, *site, info);
  }
  if (IsFault(info) && GoOnBehindFault(stopped, state, info)) return GoOn(state);
  if (FinishFirst(stopped, state, info)) return {.how = How::kStep};
  LeaveForSignal(stopped, state, info);
  return Deliver(stopped, state, info);
}

// The displaced instructions are finished first: a handler that returned into the middle of the
// region would return to bytes of the jump.
Resumption HitHandler::OnSignalInDetour(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                        const siginfo_t& info) {
  if (IsFault(info)) {
    LetSignalsIn(stopped);
    return OnFaultInDetour(stopped, state, site, info);
  }
  FinishHit(stopped, state, site, Evaluator());
  ThreadState::Of(stopped.thread()).held_signals.push_back(info);
  KeepSignalsAway(stopped);
  return OnSteppedInDetour(stopped, state, site);
}

// A trampoline's load, or no room on the stack for it: nothing of the program's.
bool HitHandler::GoOnBehindFault(tracee::Stopped& stopped, ProcessState& state,
                                 const siginfo_t& info) {
  const Optimization* optimization = state.sites.FindByTrampoline(IpInDetour(stopped, state));
  if (optimization == nullptr) return false;
  auto fix_up = detour::FixUpAddress(optimization->returning, optimization->trampoline.value,
                                     stopped.regs().rip);
  if (fix_up && !IsMisaligned(info)) {
    stopped.mutable_regs().rip = *fix_up;
  } else if (!returns_.LeaveTrampoline(stopped, state)) {
    return false;
  }
  KeepFaultSignal(stopped, state, info.si_signo);
  return true;
}

void HitHandler::LetSignalsIn(tracee::Stopped& stopped) {
  auto mask = std::exchange(ThreadState::Of(stopped.thread()).mask_before_steps, std::nullopt);
  if (mask) stopped.WriteSignalMask(*mask);
}

Resumption HitHandler::OnSteppedInDetour(tracee::Stopped& stopped, ProcessState& state,
                                         Site& site) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  thread.stepping.reset();
  const Optimization& optimization = *site.optimization();
  if (!optimization.InDisplaced(RemoteAddr{stopped.regs().rip})) {
    LetSignalsIn(stopped);
    return DeliverHeld(stopped, state);
  }
  user_regs_struct regs = WithoutDetour(stopped, optimization);
  RemoteAddr ip{regs.rip};
  if (ip < site.address() || ip >= optimization.region_end()) {
    stopped.mutable_regs() = regs;
    LetSignalsIn(stopped);
    return DeliverHeld(stopped, state);
  }
  thread.stepping = site.address();
  return {.how = How::kStep};
}

// A load of ours that finds no memory goes on at its fix-up. What else may happen before the
// displaced instructions (no room on the stack, an operand that the program's alignment check does
// not like) is no business of the program either: the hit is finished from here.
Resumption HitHandler::OnFaultOfOurs(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                     const siginfo_t& info) {
  const Optimization& optimization = *site.optimization();
  auto fix_up =
      detour::FixUpAddress(optimization.detour, optimization.buffer.value, stopped.regs().rip);
  if (fix_up && !IsMisaligned(info)) {
    stopped.mutable_regs().rip = *fix_up;
  } else if (!FinishHit(stopped, state, site, Evaluator())) {
    return Deliver(stopped, state, info);
  }
  KeepFaultSignal(stopped, state, info.si_signo);
  return GoOn(state);
}

// What the program's own instructions raise it is told, the first one as if it stood at the site;
// what comes behind can only be restarted, or even looked at, where it belongs, so the site becomes
// a breakpoint and the instruction faults again there.
Resumption HitHandler::OnFaultInDetour(tracee::Stopped& stopped, ProcessState& state, Site& site,
                                       const siginfo_t& info) {
  const Optimization& optimization = *site.optimization();
  if (!optimization.InDisplaced(RemoteAddr{stopped.regs().rip})) {
    return OnFaultOfOurs(stopped, state, site, info);
  }
  user_regs_struct regs = WithoutDetour(stopped, optimization);
  if (RemoteAddr{regs.rip} != site.address()) {
    unoptimize_(state, site.address(), "an instruction that a jump displaces has raised a signal");
    return GoOn(state);
  }
  stopped.mutable_regs() = regs;
  if (NamesInstruction(info)) {
    siginfo_t corrected = info;
    corrected.si_addr = reinterpret_cast<void*>(site.address().value);
    stopped.SetSignalInfo(corrected);
  }
  ThreadState::Of(stopped.thread()).stepping.reset();
  return Deliver(stopped, state, info);
}

// The program steps itself with the trap flag. A boosted copy may take several instructions for its
// one; until it is through, the program has nothing to see.
Resumption HitHandler::OnProgramsStep(tracee::Stopped& stopped, ProcessState& state,
                                      const siginfo_t& info) {
  RemoteAddr ip = IpInDetour(stopped, state);
  if (Site* optimized = state.sites.FindByDetour(ip)) {
    if (info.si_code != TRAP_TRACE) return OnSignalInDetour(stopped, state, *optimized, info);
    // It has gone no further than the jump: let it take the breakpoint instead.
    if (ip == optimized->optimization()->buffer) {
      stopped.mutable_regs().rip = optimized->address().value;
    }
    unoptimize_(state, optimized->address(), "the program steps itself through it");
    return GoOn(state);
  }
  const Site* site = info.si_code == TRAP_TRACE ? state.sites.FindByCopy(ip) : nullptr;
  if (site != nullptr && ip != site->copy_address() &&
      site->ShownAddress(ip) == site->address().value) {
    return GoOn(state);
  }
  LeaveForSignal(stopped, state, info);
  return {.how = GoOn(state).how, .signal = SIGTRAP};
}

// A site that was disarmed while this trap was on its way has its own byte back: run that. An int3
// of the program is still there: the program's business.
Resumption HitHandler::OnForeignTrap(tracee::Stopped& stopped, ProcessState& state) {
  RemoteAddr address{stopped.regs().rip - 1};
  std::byte present{kBreakpointByte};
  if (state.sites.Find(address) != nullptr) (void)stopped.ReadMemory(address, {&present, 1});
  bool was_ours = present != std::byte{kBreakpointByte} || MendCopy(state, address, stopped.tid());
  if (!was_ours) return {.how = GoOn(state).how, .signal = SIGTRAP};
  stopped.mutable_regs().rip = address.value;
  return GoOn(state);
}

void HitHandler::LeaveForSignal(tracee::Stopped& stopped, ProcessState& state,
                                const siginfo_t& info) {
  if (NamesInstruction(info)) {
    RemoteAddr address{reinterpret_cast<uint64_t>(info.si_addr)};
    const Site* site = state.sites.FindByCopy(address);
    auto shown = site == nullptr ? std::nullopt : site->ShownAddress(address);
    if (shown) {
      siginfo_t corrected = info;
      corrected.si_addr = reinterpret_cast<void*>(*shown);
      stopped.SetSignalInfo(corrected);
    }
  }
  LeaveOurCode(stopped, state, IsFault(info));
}

void HitHandler::ReleaseSignals(tracee::Stopped& stopped) {
  LetSignalsIn(stopped);
  for (const siginfo_t& held : std::exchange(ThreadState::Of(stopped.thread()).held_signals, {}))
    stopped.DeferSignal(held);
}

void HitHandler::LeaveOurCode(tracee::Stopped& stopped, ProcessState& state, bool fault) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  bool stepped = std::exchange(thread.stepping, std::nullopt).has_value();
  RemoteAddr ip{stopped.regs().rip};
  if (state.IsTrampoline(ip)) {
    (void)returns_.OnReturn(stopped, state);
    return;
  }
  if (state.sites.FindByTrampoline(IpInDetour(stopped, state)) != nullptr) {
    (void)returns_.LeaveTrampoline(stopped, state);
    return;
  }
  Site* site = state.sites.FindByCopy(ip);
  if (site == nullptr) return;
  if (stepped && !site->copy().boosted) {
    StoppedMemoryBus memory(stopped);
    (void)arch::FixUpAfterStep(site->copy(), site->instruction(), site->address().value,
                               site->copy_address().value, stopped.mutable_regs(), memory);
  } else {
    arch::LeaveCopy(site->copy(), site->instruction(), site->address().value,
                    site->copy_address().value, stopped.mutable_regs());
  }
  bool not_executed = stopped.regs().rip == site->address().value;
  // As under the kernel's uprobes, a faulting instruction hits again when it is restarted.
  if (not_executed && !fault && site->armed()) {
    thread.interrupted = Interrupted{.site = site->address(), .sp = stopped.regs().rsp};
  }
}

}  // namespace probed::probe

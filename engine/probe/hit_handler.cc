#include "engine/probe/hit_handler.h"

#include "base/clock.h"
#include "engine/arch/x86_64/eflags.h"
#include "engine/detour/leave.h"
#include "engine/probe/fault_signal.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/signal_info.h"
#include "engine/probe/trap_signal.h"
#include "engine/ring/clock.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

using tracee::Resumption;
using How = tracee::Resumption::How;

// Until the program's entry point every system call is watched for new mappings (module_watcher.h).
Resumption GoOn(const ProcessState& state) {
  return {.how = state.loading ? How::kSyscall : How::kContinue};
}

// The same execution of the instruction, begun again after a signal handler.
bool IsRepeated(ThreadState& thread, const Site& site, uint64_t sp) {
  if (!thread.interrupted) return false;
  bool repeated = thread.interrupted->site == site.address() && thread.interrupted->sp == sp;
  if (repeated) thread.interrupted.reset();
  return repeated;
}

// Where the program believes to be when its ip is in the copy.
std::optional<uint64_t> ShownAddress(const Site& site, RemoteAddr ip) {
  return arch::OriginalIp(site.copy(), site.copy_address().value, ip.value);
}

bool NotExecuted(const Site& site, RemoteAddr ip) {
  return ShownAddress(site, ip) == site.address().value;
}

// The site whose copied instruction has been run up to the breakpoint behind it.
const Site* FindByTrapBehindCopy(const ProcessState& state, RemoteAddr address) {
  const Site* site = state.sites.FindByCopy(address);
  bool is_end = site != nullptr && site->copy().ends_in_trap && address == site->copy_end();
  return is_end ? site : nullptr;
}

// Told by the address alone, where a thread cannot stand unless it has run into a breakpoint of
// ours. The siginfo says so too, for the price of a system call, but not always: one SIGTRAP that
// waits in a thread that blocks it swallows the trap's own (kernel/signal.c, legacy_queue).
bool HasSurelyTrapped(tracee::Stopped& stopped, const ProcessState& state) {
  bool steps = ThreadState::Of(stopped.thread()).stepping.has_value() ||
               (stopped.regs().eflags & arch::kTrapFlag) != 0;
  if (steps) return false;
  RemoteAddr address{stopped.regs().rip - 1};
  const Site* site = state.sites.Find(address);
  if (site != nullptr) return site->armed() && !site->optimization() && !site->is_ambiguous();
  return state.IsTrampoline(address) || state.sites.AsksAt(address) ||
         FindByTrapBehindCopy(state, address) != nullptr;
}

// A SIGTRAP that was sent does not reach a program that ignores it, or a thread that blocks it as
// far as the program knows. One that has swallowed a trap was pending, and is so again.
bool KeepBack(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info,
              bool has_trapped) {
  if (IgnoresTraps(state)) return true;
  if (!has_trapped && !RestoreFullMask(stopped)) return false;
  stopped.DeferSignal(info);
  return true;
}

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

Resumption HitHandler::OnTrap(tracee::Stopped& stopped, ProcessState& state) {
  bool has_trapped = HasSurelyTrapped(stopped, state);
  bool may_lose_signal = MayLoseTrapSignal(stopped.thread(), state);
  if (!has_trapped || may_lose_signal) {
    siginfo_t info = stopped.signal_info();
    bool sent = info.si_code <= 0;  // by a process, not raised by an instruction
    bool kept_back = sent && KeepBack(stopped, state, info, has_trapped);
    if (kept_back && !has_trapped) return GoOn(state);
  }
  Resumption resumption = Handle(stopped, state, has_trapped);
  bool is_over = resumption.signal == 0 && resumption.how != How::kStep;
  if (may_lose_signal && is_over) KeepTrapSignal(stopped, state);
  return resumption;
}

Resumption HitHandler::Handle(tracee::Stopped& stopped, ProcessState& state, bool has_trapped) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  // int3 alone has SI_KERNEL (arch/x86 do_int3)
  if (!has_trapped && stopped.signal_info().si_code != SI_KERNEL) {
    siginfo_t info = stopped.signal_info();
    if (info.si_code <= 0) return OnSignal(stopped, state, info);  // sent, like any other
    bool step = info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT;
    if (step && thread.stepping) return OnStepped(stopped, state);
    return OnProgramsStep(stopped, state, info);
  }
  thread.stepping.reset();
  return OnBreakpoint(stopped, state);
}

// A detour or trampoline asks for what it does not find, or has no room for, in its shadow stack.
Resumption HitHandler::OnAsked(tracee::Stopped& stopped, ProcessState& state) {
  RemoteAddr address{stopped.regs().rip - 1};
  stopped.mutable_regs().rip = address.value;
  Site* site = state.sites.FindByDetour(address);
  if (site == nullptr) {
    bool known = returns_.LeaveTrampoline(stopped, state);
    return {.how = GoOn(state).how, .signal = known ? 0 : SIGTRAP};
  }
  TakeOverFrames(stopped, state);
  FinishHit(stopped, state, *site, Evaluator());
  KnowThread(stopped, state);
  return GoOn(state);
}

Resumption HitHandler::OnBreakpoint(tracee::Stopped& stopped, ProcessState& state) {
  RemoteAddr address{stopped.regs().rip - 1};
  if (state.sites.AsksAt(address)) return OnAsked(stopped, state);
  if (Site* site = state.sites.Find(address); site != nullptr && site->armed()) {
    return OnHit(stopped, state, *site);
  }
  if (state.IsTrampoline(address)) {
    if (returns_.OnReturn(stopped, state)) return GoOn(state);
    return {.how = GoOn(state).how, .signal = SIGTRAP};
  }
  if (const Site* site = FindByTrapBehindCopy(state, address)) {
    stopped.mutable_regs().rip = site->next().value;
    return GoOn(state);
  }
  return OnForeignTrap(stopped, state);
}

EvaluateRest HitHandler::Evaluator() {
  return [this](tracee::Stopped& stopped, ProcessState& state, Site& site, size_t first) {
    EvaluateFrom(stopped, state, site, first);
  };
}

void HitHandler::EvaluateFrom(tracee::Stopped& stopped, ProcessState& state, Site& site,
                              size_t first) {
  uint64_t address = site.address().value;
  StoppedContext context(stopped, stopped.regs(), address);
  HitPlace place{.ip = address, .function = address, .tsc = ring::ReadTsc(), .time = ReadClocks()};
  if (first == 0) site.CountHits(1);
  const Optimization& optimization = *site.optimization();
  for (size_t i = first; i < optimization.entries.size(); ++i) {
    Probe& probe = *optimization.probes[optimization.entries[i]];
    if (!probe.enabled || !site.Carries(probe)) continue;
    ++probe.counters.hits;
    context.Aim(address - probe.definition->offset, {});
    recorder_.Record(probe, place, state, stopped.tid(), context);
  }
  if (first > optimization.entries.size()) return;
  std::vector<std::shared_ptr<Probe>> returning;
  for (size_t i : optimization.returns) {
    const auto& probe = optimization.probes[i];
    if (!probe->enabled || !site.Carries(*probe)) continue;
    ++probe->counters.hits;
    returning.push_back(probe);
  }
  if (!returning.empty()) returns_.Hijack(stopped, state, address, returning, context);
}

void HitHandler::Evaluate(tracee::Stopped& stopped, ProcessState& state, Site& site) {
  uint64_t address = site.address().value;
  StoppedContext context(stopped, stopped.regs(), address);
  HitPlace place{.ip = address, .function = address, .tsc = ring::ReadTsc(), .time = ReadClocks()};
  site.CountHits(1);
  std::vector<std::shared_ptr<Probe>> returning;
  for (const auto& probe : site.probes()) {
    if (!probe->enabled) continue;
    ++probe->counters.hits;
    if (probe->hijacks()) {
      returning.push_back(probe);
    } else if (probe->is_return()) {
      RecordReturn(stopped, state, site, *probe);
    } else {
      context.Aim(address - probe->definition->offset, {});
      recorder_.Record(*probe, place, state, stopped.tid(), context);
    }
  }
  if (!returning.empty()) returns_.Hijack(stopped, state, address, returning, context);
}

// On the ret itself: the return address is on top of the stack.
void HitHandler::RecordReturn(tracee::Stopped& stopped, ProcessState& state, const Site& site,
                              Probe& probe) {
  uint64_t caller = 0;
  std::span<uint64_t, 1> word(&caller, 1);
  (void)stopped.ReadMemory(RemoteAddr{stopped.regs().rsp}, std::as_writable_bytes(word));
  uint64_t base = site.address().value - site.place().offset.value;
  StoppedContext context(stopped, stopped.regs(), caller);
  context.Aim(base, {});
  HitPlace place{.ip = caller,
                 .function = base + probe.definition->offset,
                 .tsc = ring::ReadTsc(),
                 .time = ReadClocks()};
  recorder_.Record(probe, place, state, stopped.tid(), context);
}

Resumption HitHandler::OnHit(tracee::Stopped& stopped, ProcessState& state, Site& site) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  RemoteAddr address = site.address();
  stopped.mutable_regs().rip = address.value;
  if (!IsRepeated(thread, site, stopped.regs().rsp)) {
    Evaluate(stopped, state, site);
    if (site.has_hooks()) run_hooks_(stopped, state, address);
  }
  Site* still = state.sites.Find(address);
  return still != nullptr && still->armed() ? Execute(stopped, state, *still) : GoOn(state);
}

// The instruction of a site that is about to be executed there.
Resumption HitHandler::Execute(tracee::Stopped& stopped, ProcessState& state, Site& site) {
  if (site.optimization()) {  // the trap was on its way
    stopped.mutable_regs().rip = site.optimization()->displaced().value;
    return GoOn(state);
  }
  if (site.is_emulated()) {
    StoppedMemoryBus memory(stopped);
    auto emulated = arch::Emulate(site.instruction(), stopped.mutable_regs(), memory);
    if (emulated == arch::EmulationResult::kDone) return GoOn(state);
    // What is declined faults or traps in the program, and that needs the instruction itself.
    if (!site.has_copy()) {
      tracee::CodeMemory code(stopped);
      (void)site.Disarm(code);
      return GoOn(state);
    }
  }
  stopped.GoToCopy(site.copy_address());
  if (site.copy().boosted || site.copy().ends_in_trap) return GoOn(state);
  ThreadState::Of(stopped.thread()).stepping = site.address();
  return {.how = How::kStep};
}

Resumption HitHandler::OnStepped(tracee::Stopped& stopped, ProcessState& state) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  Site* site = state.sites.Find(*std::exchange(thread.stepping, std::nullopt));
  if (site == nullptr || !site->optimization()) LetSignalsIn(stopped);
  if (site == nullptr || !site->has_copy()) return DeliverHeld(stopped, state);
  if (site->optimization()) return OnSteppedInDetour(stopped, state, *site);
  if (site->copy().boosted) {  // stepped only because a signal waits for it
    RemoteAddr ip{stopped.regs().rip};
    // One round of a rep leaves the ip where it was: the signal waits no longer.
    if (NotExecuted(*site, ip) && ip != site->copy_address()) {
      thread.stepping = site->address();
      return {.how = How::kStep};
    }
    LeaveOurCode(stopped, state, /*fault=*/false);
    return DeliverHeld(stopped, state);
  }
  StoppedMemoryBus memory(stopped);
  auto result = arch::FixUpAfterStep(site->copy(), site->instruction(), site->address().value,
                                     site->copy_address().value, stopped.mutable_regs(), memory);
  if (result != arch::StepResult::kNotFinished) return DeliverHeld(stopped, state);
  stopped.mutable_regs().rip = site->copy_address().value;
  thread.stepping = site->address();
  return {.how = How::kStep};
}

Resumption HitHandler::DeliverHeld(tracee::Stopped& stopped, ProcessState& state) {
  auto& held = ThreadState::Of(stopped.thread()).held_signals;
  if (held.empty()) return GoOn(state);
  siginfo_t first = held.front();
  held.erase(held.begin());
  stopped.SetSignalInfo(first);
  return Deliver(stopped, state, first);
}

// What was held back meanwhile comes after it.
Resumption HitHandler::Deliver(tracee::Stopped& stopped, ProcessState& state,
                               const siginfo_t& info) {
  // A return was the last of the steps.
  if (state.sites.FindByTrampoline(RemoteAddr{stopped.regs().rip}) != nullptr) {
    (void)returns_.LeaveTrampoline(stopped, state);
  }
  for (const siginfo_t& held : std::exchange(ThreadState::Of(stopped.thread()).held_signals, {}))
    stopped.DeferSignal(held);
  return {.how = GoOn(state).how, .signal = info.si_signo};
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
  if (site->instruction().is_syscall || !NotExecuted(*site, ip)) return false;
  thread.held_signals.push_back(info);
  thread.stepping = site->address();
  return true;
}

Resumption HitHandler::OnSignal(tracee::Stopped& stopped, ProcessState& state,
                                const siginfo_t& info) {
  if (Site* site = state.sites.FindByDetour(RemoteAddr{stopped.regs().rip})) {
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
  RemoteAddr ip{stopped.regs().rip};
  const Optimization* optimization = state.sites.FindByTrampoline(ip);
  if (optimization == nullptr) return false;
  auto fix_up =
      detour::FixUpAddress(optimization->returning, optimization->trampoline.value, ip.value);
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
  RemoteAddr ip{stopped.regs().rip};
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
      ShownAddress(*site, ip) == site->address().value) {
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
  bool was_ours = state.sites.Find(address) != nullptr;
  if (was_ours && stopped.ReadMemory(address, {&present, 1}).ok() &&
      std::to_integer<uint8_t>(present) != kBreakpointByte) {
    stopped.mutable_regs().rip = address.value;
    return GoOn(state);
  }
  return {.how = GoOn(state).how, .signal = SIGTRAP};
}

void HitHandler::LeaveForSignal(tracee::Stopped& stopped, ProcessState& state,
                                const siginfo_t& info) {
  if (NamesInstruction(info)) {
    RemoteAddr address{reinterpret_cast<uint64_t>(info.si_addr)};
    const Site* site = state.sites.FindByCopy(address);
    auto shown = site == nullptr ? std::nullopt : ShownAddress(*site, address);
    if (shown) {
      siginfo_t corrected = info;
      corrected.si_addr = reinterpret_cast<void*>(*shown);
      stopped.SetSignalInfo(corrected);
    }
  }
  LeaveOurCode(stopped, state, IsFault(info));
}

void HitHandler::LeaveOurCode(tracee::Stopped& stopped, ProcessState& state, bool fault) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  bool stepped = std::exchange(thread.stepping, std::nullopt).has_value();
  RemoteAddr ip{stopped.regs().rip};
  if (state.IsTrampoline(ip)) {
    (void)returns_.OnReturn(stopped, state);
    return;
  }
  if (state.sites.FindByTrampoline(ip) != nullptr) {
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

#include "engine/probe/hit_handler.h"

#include "base/clock.h"
#include "engine/arch/x86_64/eflags.h"
#include "engine/detour/leave.h"
#include "engine/probe/fault_signal.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/process_signal.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/signal_info.h"
#include "engine/probe/trap_signal.h"
#include "engine/ring/clock.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

using tracee::Resumption;
using How = tracee::Resumption::How;

// The same execution of the instruction, begun again after a signal handler.
bool IsRepeated(ThreadState& thread, const Site& site, uint64_t sp) {
  if (!thread.interrupted) return false;
  bool repeated = thread.interrupted->site == site.address() && thread.interrupted->sp == sp;
  if (repeated) thread.interrupted.reset();
  return repeated;
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

// Elsewhere, as behind an instruction of one byte: one that was sent is not delivered to a thread
// that blocks it, unless a trap that it has swallowed has let it in.
bool HasSwallowedTrap(tracee::Stopped& stopped, ProcessState& state) {
  const Site* site = state.sites.Find(RemoteAddr{stopped.regs().rip - 1});
  if (site == nullptr || !site->armed() || site->optimization()) return false;
  return stopped.signal_info().si_code <= 0 && HasLetIn(stopped, state);
}

// A SIGTRAP that was sent does not reach a program that ignores it, or a thread that blocks it as
// far as the program knows. One that has swallowed a trap was pending, and is so again.
bool KeepBack(tracee::Stopped& stopped, ProcessState& state, const siginfo_t& info,
              bool has_trapped) {
  if (IgnoresTraps(state)) return true;
  if (has_trapped) {
    stopped.DeferSignal(info);
    return true;
  }
  const bool is_for_others = RestoreFullMask(stopped) || RestoreUnseenBlock(stopped, state);
  if (is_for_others) SendAgain(stopped, info);
  if (is_for_others || !MayBeAwaited(stopped, state)) return is_for_others;
  stopped.DeferSignal(info);  // looked at once more
  return true;
}

// The end of a step that a daemon had begun which then died. The kernel has cleared the trap flag,
// which would still be set if the program were stepping itself (ptrace_disable).
bool IsLeftoverStep(const ProcessState& state, const siginfo_t& info,
                    const user_regs_struct& regs) {
  return state.salvaged && info.si_code == TRAP_TRACE && (regs.eflags & arch::kTrapFlag) == 0;
}

}  // namespace

Resumption HitHandler::OnTrap(tracee::Stopped& stopped, ProcessState& state) {
  bool has_trapped = HasSurelyTrapped(stopped, state) || HasSwallowedTrap(stopped, state);
  bool may_lose_signal = MayLoseTrapSignal(stopped.thread(), state);
  if (!has_trapped || may_lose_signal) {
    siginfo_t info = stopped.signal_info();
    bool sent = info.si_code <= 0;  // by a process, not raised by an instruction
    bool kept_back = sent && KeepBack(stopped, state, info, has_trapped);
    if (kept_back && !has_trapped) return GoOn(state);
  }
  Resumption resumption = Handle(stopped, state, has_trapped);
  bool is_over = resumption.signal == 0 && resumption.how != How::kStep;
  if (is_over && (may_lose_signal || HasLostBlock(stopped))) KeepTrapSignal(stopped, state);
  if (resumption.signal == SIGTRAP) YieldToProgram(stopped, state);
  if (is_over) {
    KeepRescue(stopped, state);
    DeliverKeptTrap(stopped, state);
  }
  return resumption;
}

Resumption HitHandler::Handle(tracee::Stopped& stopped, ProcessState& state, bool has_trapped) {
  ThreadState& thread = ThreadState::Of(stopped.thread());
  // int3 alone has SI_KERNEL (arch/x86 do_int3)
  if (!has_trapped && stopped.signal_info().si_code != SI_KERNEL) {
    siginfo_t info = stopped.signal_info();
    if (info.si_code <= 0) return OnSignal(stopped, state, info);  // sent, like any other
    if (sys::IsHandlerNotice(info)) return GoOn(state);
    bool step = info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT;
    if (step && thread.stepping) return OnStepped(stopped, state);
    if (IsLeftoverStep(state, info, stopped.regs())) return GoOn(state);
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
  if (Site* site = state.sites.Find(address);
      site != nullptr && site->armed() && StandsStill(state, *site, stopped.tid())) {
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
    if (site->NotExecuted(ip) && ip != site->copy_address()) {
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

}  // namespace probed::probe

#include "engine/probe/return_handler.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/clock.h"
#include "engine/lang/fetch_program.h"
#include "engine/probe/address_space.h"
#include "engine/probe/routines.h"
#include "engine/probe/shadow_returns.h"
#include "engine/probe/trampoline_exit.h"
#include "engine/ring/clock.h"

namespace probed::probe {
namespace {

bool ReadWord(tracee::Stopped& stopped, uint64_t address, uint64_t& word) {
  return stopped.ReadMemory(RemoteAddr{address}, std::as_writable_bytes(std::span(&word, 1))).ok();
}

bool WriteWord(tracee::Stopped& stopped, uint64_t address, uint64_t word) {
  return stopped.WriteMemory(RemoteAddr{address}, std::as_bytes(std::span(&word, 1))).ok();
}

bool Holds(tracee::Stopped& stopped, uint64_t slot, uint64_t value) {
  uint64_t word = 0;
  return ReadWord(stopped, slot, word) && word == value;
}

// Where the popped return address was: `ret` leaves sp just above it.
uint64_t SlotOf(const user_regs_struct& regs) {
  return regs.rsp - sizeof(uint64_t);
}

// Whatever waited at `slot` is dead: there is a fresh return address.
void Forget(tracee::Thread& thread, ProcessState& state, uint64_t slot) {
  CountUnwound(state, thread.tid(), ThreadState::Of(thread).returns.DropAt(slot));
  if (!state.stacks_migrate) return;
  for (const auto& [tid, other] : state.process.threads())
    CountUnwound(state, tid, ThreadState::Of(*other).returns.DropAt(slot));
}

// Probes that may wait for one more return; the others have missed this one.
std::vector<OutstandingReturn> Admit(std::span<const std::shared_ptr<Probe>> probes,
                                     uint32_t& entry_arguments) {
  std::vector<OutstandingReturn> admitted;
  for (const auto& probe : probes) {
    if (probe->outstanding >= probe->options.max_active) {
      ++probe->counters.missed;
      continue;
    }
    entry_arguments = std::max(entry_arguments, probe->definition->entry_arguments);
    admitted.emplace_back(probe);
  }
  return admitted;
}

// Larger stacks do not migrate.
constexpr uint64_t kLargestCoroutine = 1 << 20;
// Threads that never return leave their slots hijacked.
constexpr size_t kMostAdopted = 256;

tracee::Thread* AnotherThread(const tracee::Process& process, pid_t tid) {
  for (const auto& [other, thread] : process.threads()) {
    if (other != tid && thread->role() == tracee::Thread::Role::kThread) return thread.get();
  }
  return nullptr;
}

// What other threads wait for on the stack that starts at `sp`.
template <typename Visit>
void EraseForeign(tracee::Thread& thread, ProcessState& state, uint64_t sp, uint64_t end,
                  Visit visit) {
  for (const auto& [tid, other] : state.process.threads()) {
    if (other.get() == &thread) continue;
    std::erase_if(ThreadState::Of(*other).returns.frames(), [&](const PendingReturn& frame) {
      return frame.slot >= sp && frame.slot < end && visit(frame);
    });
  }
}

bool IsUnwanted(const OutstandingReturn& outstanding) {
  return !outstanding.probe().enabled;
}

// The frames that return through `slot` now. A coroutine may come back in another thread than it
// was called in; a child that shares its parent's stack comes back before the parent does.
std::vector<PendingReturn> Claim(tracee::Thread& thread, ProcessState& state, uint64_t slot) {
  auto frames = ThreadState::Of(thread).returns.Take(slot);
  bool shares = thread.role() == tracee::Thread::Role::kMemorySharer;
  for (const auto& [tid, other] : state.process.threads()) {
    if (!frames.empty()) break;
    ReturnStack& returns = ThreadState::Of(*other).returns;
    frames = shares ? returns.Inherit(slot) : returns.Take(slot);
    if (!frames.empty() && !shares) state.stacks_migrate = true;
  }
  return frames;
}

// False: the slot is not hijacked (any more).
bool GiveBack(tracee::Stopped& stopped, const PendingReturn& frame) {
  return Holds(stopped, frame.slot, frame.trampoline) &&
         WriteWord(stopped, frame.slot, frame.real_return);
}

void GiveUpForeign(tracee::Stopped& stopped, ProcessState& state) {
  uint64_t sp = stopped.regs().rsp;
  bool any = false;
  TakeOverForeignFrames(stopped, state, sp, sp + kLargestCoroutine);
  EraseForeign(stopped.thread(), state, sp, sp + kLargestCoroutine, [&](const PendingReturn&) {
    any = true;
    return false;
  });
  if (!any) return;
  auto space = AddressSpace::Read(state.id.pid);
  const elf::Mapping* stack = space.ok() ? space->map().At(RemoteAddr{sp}) : nullptr;
  if (stack == nullptr) return;
  TakeOverForeignFrames(stopped, state, sp, stack->end.value);
  EraseForeign(stopped.thread(), state, sp, stack->end.value, [&](const PendingReturn& frame) {
    (void)GiveBack(stopped, frame);
    return true;
  });
}

}  // namespace

// Puts the trampoline into the slot, or joins the frame that has done so already (a tail call).
bool ReturnHandler::Redirect(tracee::Stopped& stopped, ProcessState& state, uint64_t slot,
                             PendingReturn& frame) {
  ReturnStack& returns = ThreadState::Of(stopped.thread()).returns;
  uint64_t trampoline = state.trampoline.value;
  frame.trampoline = trampoline;
  if (trampoline == 0 || !ReadWord(stopped, slot, frame.real_return)) return false;
  if (state.sites.TrampolineAt(RemoteAddr{frame.real_return}) != nullptr) {
    TakeOverFrames(stopped, state);
    if (!ReadWord(stopped, slot, frame.real_return)) return false;
  }
  RemoteAddr present{frame.real_return};
  if (state.IsTrampoline(present) || state.sites.TrampolineAt(present) != nullptr) {
    const PendingReturn* below = returns.Find(slot);
    if (below == nullptr) return false;
    frame.real_return = below->real_return;
    frame.trampoline = below->trampoline;
    frame.chained = true;
    return true;
  }
  Forget(stopped.thread(), state, slot);
  (void)returns.EndWalk(slot);  // one that ended where no handler begins
  auto still_hijacked = [&](const auto& other) {
    return Holds(stopped, other.slot, other.trampoline);
  };
  CountUnwound(state, stopped.tid(), returns.Reap(slot, still_hijacked));
  auto record = state.journal.AddReturn(slot, frame.real_return);
  if (!record.ok()) return false;
  frame.record = std::move(record).value();
  stopped.AskForItsEnd();
  return WriteWord(stopped, slot, trampoline);
}

void ReturnHandler::Hijack(tracee::Stopped& stopped, ProcessState& state, uint64_t function,
                           std::span<const std::shared_ptr<Probe>> probes,
                           StoppedContext& context) {
  PendingReturn frame;
  frame.slot = stopped.regs().rsp;
  frame.function = function;
  uint32_t entry_arguments = 0;
  frame.probes = Admit(probes, entry_arguments);
  if (frame.probes.empty()) return;
  // Not redirected: `frame` dies here and counts as missed.
  if (!Redirect(stopped, state, frame.slot, frame)) return;
  if (entry_arguments > 0) frame.arguments = lang::CaptureEntryArguments(context, entry_arguments);
  ThreadState::Of(stopped.thread()).returns.Push(std::move(frame));
}

void ReturnHandler::RecordReturn(tracee::Stopped& stopped, ProcessState& state,
                                 PendingReturn& frame, StoppedContext& context) {
  HitPlace place{.ip = frame.real_return,
                 .function = frame.function,
                 .tsc = ring::ReadTsc(),
                 .time = ReadClocks()};
  for (auto& outstanding : frame.probes) {
    if (!outstanding.probe().enabled) continue;  // disabled or deleted meanwhile: missed
    std::shared_ptr<Probe> probe = outstanding.Finish();
    context.Aim(frame.function - probe->definition->offset, frame.arguments);
    recorder_.Record(*probe, place, state, stopped.tid(), context);
  }
}

bool ReturnHandler::OnReturn(tracee::Stopped& stopped, ProcessState& state) {
  std::vector<PendingReturn> frames = Claim(stopped.thread(), state, SlotOf(stopped.regs()));
  if (frames.empty()) return false;
  uint64_t real_return = frames.front().real_return;
  StoppedContext context(stopped, stopped.regs(), real_return);
  for (auto& frame : frames)
    RecordReturn(stopped, state, frame, context);
  stopped.mutable_regs().rip = real_return;
  return true;
}

// Of a return that a trampoline has begun to record.
void ReturnHandler::RecordTaken(tracee::Stopped& stopped, ProcessState& state,
                                const Optimization& optimization, const ring::ShadowFrame& frame,
                                size_t first) {
  HitPlace place{.ip = frame.caller,
                 .function = optimization.site.value,
                 .tsc = ring::ReadTsc(),
                 .time = ReadClocks()};
  StoppedContext context(stopped, stopped.regs(), frame.caller);
  std::span<const uint64_t> arguments(frame.arguments, optimization.entry_arguments);
  for (size_t i = first; i < optimization.returns.size(); ++i) {
    Probe& probe = *optimization.probes[optimization.returns[i]];
    if (!probe.enabled) continue;
    ++probe.counters.hits;
    context.Aim(place.function - probe.definition->offset, arguments);
    recorder_.Record(probe, place, state, stopped.tid(), context);
  }
}

bool ReturnHandler::LeaveTrampoline(tracee::Stopped& stopped, ProcessState& state) {
  auto record = [this](auto&&... returned) { RecordTaken(returned...); };
  const Optimization* optimization = state.sites.FindByTrampoline(IpInDetour(stopped, state));
  for (size_t i = 0; optimization != nullptr && i <= ring::kShadowFrames; ++i) {
    // Not in a shadow stack: it was taken over meanwhile.
    if (!FinishReturn(stopped, state, *optimization, record)) return OnReturn(stopped, state);
    optimization = state.sites.FindByTrampoline(RemoteAddr{stopped.regs().rip});
  }
  bool is_chained = state.IsTrampoline(RemoteAddr{stopped.regs().rip});
  return is_chained ? OnReturn(stopped, state) : optimization == nullptr;
}

void ReturnHandler::HandOver(ProcessState& state, pid_t tid) {
  auto ended = state.process.threads().find(tid);
  if (ended == state.process.threads().end()) return;
  if (ended->second->role() != tracee::Thread::Role::kThread) return;
  ReturnStack& returns = ThreadState::Of(*ended->second).returns;
  TakeLeft(state, *ended->second);
  tracee::Thread* heir = returns.empty() ? nullptr : AnotherThread(state.process, tid);
  if (heir == nullptr) return;
  ReturnStack& adopted = ThreadState::Of(*heir).returns;
  for (auto& frame : returns.frames()) {
    uint64_t word = 0;
    Status read = state.process.memory().Read(RemoteAddr{frame.slot},
                                              std::as_writable_bytes(std::span(&word, 1)));
    if (!read.ok() || word != frame.trampoline) continue;
    frame.probes.clear();
    CountUnwound(state, heir->tid(), adopted.DropAt(frame.slot));
    if (adopted.size() >= kMostAdopted) continue;
    adopted.Adopt(std::move(frame));
    state.stacks_migrate = true;
  }
  returns.Clear();
}

void ReturnHandler::Lift(tracee::Stopped& stopped, ProcessState& state) {
  TakeOverFrames(stopped, state);
  ReturnStack& returns = ThreadState::Of(stopped.thread()).returns;
  uint64_t sp = stopped.regs().rsp;
  returns.BeginWalk(sp);
  GiveUpForeign(stopped, state);
  // The walk would overwrite what a longjmp(3) has left, and that could mean anything afterwards.
  bool any_below = std::ranges::any_of(
      returns.frames(), [sp](const auto& frame) { return frame.slot < sp && !frame.lifted; });
  if (any_below) TakeLeft(state, stopped.thread());
  std::vector<PendingReturn> dead;
  std::erase_if(returns.frames(), [&](PendingReturn& frame) {
    frame.walked |= frame.slot >= sp;
    if (frame.lifted) return false;
    uint64_t word = 0;
    bool is_readable = ReadWord(stopped, frame.slot, word);
    bool is_ours = is_readable && word == frame.trampoline;
    if (is_ours) frame.lifted = WriteWord(stopped, frame.slot, frame.real_return);
    if (is_ours || frame.chained) return false;
    if (is_readable) dead.push_back(std::move(frame));  // else the process may have been killed
    return true;
  });
  CountUnwound(state, stopped.tid(), std::move(dead));
}

void ReturnHandler::Relay(tracee::Stopped& stopped, ProcessState& state) {
  ReturnStack& returns = ThreadState::Of(stopped.thread()).returns;
  uint64_t sp = stopped.regs().rsp;
  if (!returns.EndWalk(sp)) return;
  // The outermost of what was left had its address where that of the handler's call is now.
  auto was_left = [&](const PendingReturn& frame) {
    return frame.walked && (frame.slot < sp || (frame.slot == sp && frame.lifted &&
                                                !Holds(stopped, sp, frame.real_return)));
  };
  CountUnwound(state, stopped.tid(), returns.TakeIf(was_left));
  std::erase_if(returns.frames(), [&](PendingReturn& frame) {
    if (!frame.lifted && !frame.chained) return false;
    frame.trampoline = state.trampoline.value;
    frame.walked = false;
    if (!std::exchange(frame.lifted, false)) return false;
    return !Holds(stopped, frame.slot, frame.real_return) ||
           !WriteWord(stopped, frame.slot, frame.trampoline);
  });
}

void ReturnHandler::GiveUpTop(tracee::Stopped& stopped, ProcessState& state) {
  uint64_t slot = stopped.regs().rsp;
  state.switches_contexts = true;
  TakeOverFrames(stopped, state);
  TakeOverForeignFrames(stopped, state, slot, slot + 1);
  for (const auto& frame : Claim(stopped.thread(), state, slot))
    (void)GiveBack(stopped, frame);
}

bool ReturnHandler::HasUnwanted(const ProcessState& state) {
  for (const auto& [tid, thread] : state.process.threads()) {
    for (const auto& frame : ThreadState::Of(*thread).returns.frames()) {
      if (std::any_of(frame.probes.begin(), frame.probes.end(), IsUnwanted)) return true;
    }
  }
  return false;
}

void ReturnHandler::RestoreUnwanted(std::span<tracee::Stopped* const> threads,
                                    ProcessState& state) {
  for (auto* stopped : threads) {
    // Has returned, but its slot still looks hijacked.
    if (state.IsTrampoline(RemoteAddr{stopped->regs().rip})) OnReturn(*stopped, state);
  }
  if (threads.empty()) return;
  for (const auto& [tid, thread] : state.process.threads()) {
    TakeLeft(state, *thread);
    auto& frames = ThreadState::Of(*thread).returns.frames();
    std::unordered_set<uint64_t> wanted;
    for (auto& frame : frames) {
      std::erase_if(frame.probes, IsUnwanted);
      if (!frame.probes.empty()) wanted.insert(frame.slot);
    }
    std::erase_if(frames, [&](const PendingReturn& frame) {
      if (wanted.contains(frame.slot)) return false;
      (void)GiveBack(*threads.front(), frame);
      return true;
    });
  }
}

uint32_t ReturnHandler::RestoreAll(tracee::Stopped& stopped, ProcessState& state) {
  TakeOverAllFrames(state);
  uint32_t restored = 0;
  for (const auto& [tid, thread] : state.process.threads()) {
    TakeLeft(state, *thread);
    ReturnStack& returns = ThreadState::Of(*thread).returns;
    for (const auto& frame : returns.frames()) {
      if (GiveBack(stopped, frame)) ++restored;
    }
    returns.Clear();
  }
  return restored;
}

}  // namespace probed::probe

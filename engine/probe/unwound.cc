#include "engine/probe/unwound.h"

#include <sys/syscall.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/probe/process_state.h"
#include "engine/tracee/thread.h"

namespace probed::probe {
namespace {

bool HasGuardBelow(const AddressSpace& space, const elf::Mapping& stack) {
  const elf::Mapping* below = space.map().At(RemoteAddr{stack.start.value - 1});
  return below != nullptr && !below->readable && !below->writable;
}

bool IsOwn(const AddressSpace& space, const elf::Mapping& stack, uint64_t fs_base) {
  if (stack.path == "[stack]") return true;
  return fs_base >= stack.start.value && fs_base < stack.end.value && HasGuardBelow(space, stack);
}

// Not so where it cannot be read: the process may have ended.
bool IsOverwritten(const ProcessState& state, const ReturnStack& returns,
                   const PendingReturn& frame) {
  uint64_t word = 0;
  auto bytes = std::as_writable_bytes(std::span(&word, 1));
  return !returns.HijackerOf(frame).lifted &&
         state.process.memory().Read(RemoteAddr{frame.slot}, bytes).ok() &&
         word != frame.trampoline;
}

bool WaitsForReturns(const ProcessState& state, tracee::Thread& thread,
                     const user_regs_struct& regs) {
  if (!ThreadState::Of(thread).returns.empty()) return true;
  auto shadow = state.ring ? state.ring->shadows().Find(regs.fs_base) : std::nullopt;
  return shadow && !state.ring->shadows().Frames(*shadow).empty();
}

// What each slot of the thread's holds as long as its call may return.
std::map<uint64_t, std::vector<uint64_t>> Expected(const ProcessState& state,
                                                   tracee::Thread& thread, uint64_t fs_base) {
  std::map<uint64_t, std::vector<uint64_t>> words;
  for (const PendingReturn& frame : ThreadState::Of(thread).returns.frames())
    words[frame.slot].push_back(frame.lifted ? frame.real_return : frame.trampoline);
  auto shadow = state.ring ? state.ring->shadows().Find(fs_base) : std::nullopt;
  if (!shadow) return words;
  for (const ring::ShadowFrame& frame : state.ring->shadows().Frames(*shadow))
    words[frame.slot].push_back(frame.trampoline);
  return words;
}

// Behind the innermost of the frames above the stack pointer that have been overwritten, of which
// nobody will be able to tell afterwards.
uint64_t InnermostAlive(const ProcessState& state, tracee::Thread& thread, uint64_t fs_base,
                        const OwnStack& stack) {
  uint64_t end = stack.sp;
  for (const auto& [slot, words] : Expected(state, thread, fs_base)) {
    if (slot < stack.sp) continue;
    uint64_t word = 0;
    auto bytes = std::as_writable_bytes(std::span(&word, 1));
    if (!stack.Contains(slot) || !state.process.memory().Read(RemoteAddr{slot}, bytes).ok()) break;
    if (std::find(words.begin(), words.end(), word) != words.end()) break;
    end = slot + sizeof(word);
  }
  return end;
}

// Cheap, so that mostly nothing more has to be looked at.
bool AnyBelow(const ReturnStack& returns, uint64_t sp) {
  return std::any_of(returns.frames().begin(), returns.frames().end(),
                     [sp](const PendingReturn& frame) { return frame.slot < sp; });
}

std::optional<LastStack> StackOf(const ProcessState& state, tracee::Thread& thread) {
  const ThreadState& about = ThreadState::Of(thread);
  if (about.last_stack) return about.last_stack;
  if (!thread.stopped() || state.switches_contexts) return std::nullopt;
  const user_regs_struct regs = thread.Token().regs();
  if (!AnyBelow(about.returns, regs.rsp)) return std::nullopt;
  auto space = AddressSpace::Read(state.id.pid);
  auto stack = space.ok() ? OwnStack::Find(*space, regs) : std::nullopt;
  if (!stack) return std::nullopt;
  return LastStack{.stack = *stack};
}

}  // namespace

std::optional<OwnStack> OwnStack::Find(const AddressSpace& space, const user_regs_struct& regs) {
  const elf::Mapping* stack = space.map().At(RemoteAddr{regs.rsp});
  if (stack == nullptr || !IsOwn(space, *stack, regs.fs_base)) return std::nullopt;
  return OwnStack{.start = stack->start.value, .sp = regs.rsp, .end = stack->end.value};
}

// Of exit_group(2), which ends the process, and of a signal it is not known what would have come.
void NoteLastStack(const ProcessState& state, pid_t tid, const user_regs_struct& regs) {
  auto found = state.process.threads().find(tid);
  if (found == state.process.threads().end() || state.switches_contexts) return;
  if (!WaitsForReturns(state, *found->second, regs)) return;
  auto space = AddressSpace::Read(state.id.pid);
  auto stack = space.ok() ? OwnStack::Find(*space, regs) : std::nullopt;
  if (!stack) return;
  stack->sp = InnermostAlive(state, *found->second, regs.fs_base, *stack);
  bool by_itself = regs.orig_rax == SYS_exit && state.process.threads().size() > 1;
  ThreadState::Of(*found->second).last_stack = LastStack{.stack = *stack, .by_itself = by_itself};
}

void CountUnwound(ProcessState& state, pid_t tid, std::vector<PendingReturn> frames) {
  std::map<const Probe*, uint64_t> calls;
  for (auto& frame : frames) {
    for (auto& outstanding : frame.probes) {
      if (outstanding.Unwind()) ++calls[&outstanding.probe()];
    }
  }
  for (const auto& [probe, left] : calls) {
    state.on_unwound({.probe = probe->id,
                      .target = state.id,
                      .tid = tid,
                      .calls = left,
                      .schema = probe->schema});
  }
}

void TakeLeft(ProcessState& state, tracee::Thread& thread) {
  ReturnStack& returns = ThreadState::Of(thread).returns;
  if (returns.empty()) return;
  const std::optional<LastStack> stack = StackOf(state, thread);
  CountUnwound(state, thread.tid(), returns.TakeIf([&](const PendingReturn& frame) {
    return IsOverwritten(state, returns, frame) || (stack && stack->WasLeft(frame.slot));
  }));
}

}  // namespace probed::probe

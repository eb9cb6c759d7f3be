#include "engine/probe/shadow_returns.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/probe/shadow_table.h"
#include "engine/sys/proc.h"

namespace probed::probe {
namespace {

using ring::ShadowFrame;

// A thread whose bytes may be written with, and the process that they are in.
struct Memory {
  const tracee::Process& process;
  pid_t writer = 0;

  std::optional<uint64_t> Read(uint64_t address) const {
    uint64_t word = 0;
    auto bytes = std::as_writable_bytes(std::span(&word, 1));
    if (!process.memory().Read(RemoteAddr{address}, bytes).ok()) return std::nullopt;
    return word;
  }
  bool Write(uint64_t address, uint64_t word) const {
    auto bytes = std::as_bytes(std::span(&word, 1));
    return process.memory().Write(RemoteAddr{address}, bytes, writer).ok();
  }
};

// Of a stack, those that have not returned and still can: the outermost of a slot holds what the
// program put there, each further one (a tail call) the trampoline of the one before. Dead ones
// lose their slot.
void DropDead(const Memory& memory, std::vector<ShadowFrame>& frames) {
  std::unordered_map<uint64_t, std::optional<uint64_t>> held;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (frame->slot == 0) continue;
    auto [entry, is_innermost] = held.try_emplace(frame->slot);
    if (is_innermost) entry->second = memory.Read(frame->slot);
    bool alive = entry->second == frame->trampoline;
    entry->second = alive ? std::optional(frame->next) : std::nullopt;
    if (!alive) frame->slot = 0;
  }
}

enum class For : uint8_t { kOwner, kChild, kNobody };

void AddProbe(PendingReturn& pending, const std::shared_ptr<Probe>& probe, For whom) {
  OutstandingReturn outstanding(probe);
  if (whom != For::kChild) {
    ++probe->counters.hits;
    return pending.probes.push_back(std::move(outstanding));
  }
  pending.probes.push_back(outstanding.Inherit());
  (void)outstanding.Finish();
}

PendingReturn MakePending(const ShadowFrame& frame, const Optimization& optimization, For whom) {
  PendingReturn pending;
  pending.slot = frame.slot;
  pending.real_return = frame.next;
  pending.function = optimization.site.value;
  pending.arguments.assign(std::begin(frame.arguments),
                           std::begin(frame.arguments) + optimization.entry_arguments);
  for (size_t i : optimization.returns)
    AddProbe(pending, optimization.probes[i], whom);
  return pending;
}

// The trampoline that the slot holds.
uint64_t InnermostAt(const std::vector<ShadowFrame>& frames, uint64_t slot) {
  auto found = std::find_if(frames.rbegin(), frames.rend(),
                            [&](const ShadowFrame& frame) { return frame.slot == slot; });
  return found->trampoline;
}

// Where there are entry probes, they have counted it.
void CountHit(const ProcessState& state, const Optimization& optimization) {
  Site* site = state.sites.Find(optimization.site);
  if (site != nullptr && optimization.entries.empty()) site->CountHits(1);
}

// Of a frame that DropDead() found dead. Where its slot cannot be read the process may have ended.
bool WasLeft(const Memory& memory, const ThreadState& owner, uint64_t slot) {
  return memory.Read(slot).has_value() || (owner.last_stack && owner.last_stack->WasLeft(slot));
}

// `frames` outermost first. Those that cannot be hijacked again are missed. Where the thread is
// gone, and others may use its stack already, nothing is written: what returns through one of
// these trampolines after all will not find its frame, and ask.
void MakePendingReturns(const Memory& memory, ProcessState& state, std::vector<ShadowFrame> frames,
                        tracee::Thread& owner, For whom = For::kOwner) {
  ReturnStack& returns = ThreadState::Of(owner).returns;
  std::vector<PendingReturn> left;
  std::vector<ShadowFrame> all = frames;
  DropDead(memory, frames);
  std::unordered_map<uint64_t, uint64_t> outermost;  // where each slot returns to
  for (size_t i = 0; i < frames.size(); ++i) {
    const Optimization* optimization = state.sites.TrampolineAt(RemoteAddr{all[i].trampoline});
    if (all[i].slot == 0 || optimization == nullptr) continue;
    PendingReturn pending = MakePending(all[i], *optimization, whom);
    if (whom != For::kChild) CountHit(state, *optimization);
    if (frames[i].slot == 0) {
      if (WasLeft(memory, ThreadState::Of(owner), all[i].slot)) left.push_back(std::move(pending));
      continue;
    }
    auto [entry, is_outermost] = outermost.try_emplace(pending.slot, pending.real_return);
    if (is_outermost) CountUnwound(state, owner.tid(), returns.DropAt(pending.slot));
    if (is_outermost && whom != For::kNobody) {
      auto record = state.journal.AddReturn(pending.slot, pending.real_return);
      if (!record.ok()) continue;
      pending.record = std::move(record).value();
      if (!memory.Write(pending.slot, state.trampoline.value)) continue;
    }
    pending.chained = !is_outermost;
    pending.real_return = entry->second;
    pending.trampoline =
        whom == For::kNobody ? InnermostAt(frames, pending.slot) : state.trampoline.value;
    returns.Push(std::move(pending));
  }
  CountUnwound(state, owner.tid(), std::move(left));
}

void TakeOver(const Memory& memory, ProcessState& state, uint32_t stack, tracee::Thread& owner,
              For whom = For::kOwner) {
  ShadowTable& shadows = state.ring->shadows();
  std::vector<ShadowFrame> frames = shadows.Frames(stack);
  shadows.Clear(stack);
  MakePendingReturns(memory, state, std::move(frames), owner, whom);
}

// Its thread may run: those of start <= slot < end, which it does not.
void TakeSome(const Memory& memory, ProcessState& state, uint32_t stack, uint64_t start,
              uint64_t end, tracee::Thread& owner) {
  ShadowTable& shadows = state.ring->shadows();
  std::vector<ShadowFrame> frames = shadows.Frames(stack);
  DropDead(memory, frames);
  std::vector<ShadowFrame> taken;
  for (size_t i = 0; i < frames.size(); ++i) {
    uint64_t slot = frames[i].slot;
    if (slot < start || slot >= end || slot == 0) continue;
    if (shadows.Take(stack, i, slot)) taken.push_back(frames[i]);
  }
  MakePendingReturns(memory, state, std::move(taken), owner);
}

tracee::Thread* FindThread(const ProcessState& state, pid_t tid) {
  auto found = state.process.threads().find(tid);
  return found == state.process.threads().end() ? nullptr : found->second.get();
}

bool MayRun(const tracee::Thread& thread) {
  auto stat = sys::ReadTaskStat(thread.tid());
  return !thread.gone() && stat.ok() && !stat->exiting;
}

// Two tasks run with one fs base: a child that shares its parent's memory, or a thread that has not
// set its own yet.
void Part(tracee::Stopped& stopped, ProcessState& state, uint64_t base) {
  ShadowTable& shadows = state.ring->shadows();
  // The parent waits in its system call: what it waits for the child may return from first.
  bool shares = stopped.thread().role() == tracee::Thread::Role::kMemorySharer;
  if (auto stack = shadows.Find(base); stack && shares) {
    tracee::Thread* owner = FindThread(state, shadows.stacks().at(*stack).owner);
    Memory memory{.process = state.process, .writer = stopped.tid()};
    if (owner != nullptr && owner->stopped()) {
      TakeOver(memory, state, *stack, *owner);
      shadows.Free(*stack);
    }
  }
  shadows.Bar(base, stopped.tid());
}

// The index of the innermost frame with this slot.
std::optional<size_t> FindSlot(const std::vector<ShadowFrame>& frames, uint64_t slot) {
  for (size_t i = frames.size(); i-- > 0;) {
    if (frames[i].slot == slot) return i;
  }
  return std::nullopt;
}

}  // namespace

void KnowThread(tracee::Stopped& stopped, ProcessState& state) {
  uint64_t base = stopped.regs().fs_base;
  if (!state.ring || base == 0) return;
  ShadowTable& shadows = state.ring->shadows();
  if (stopped.thread().role() == tracee::Thread::Role::kMemorySharer) {
    return Part(stopped, state, base);
  }
  if (auto stack = shadows.Find(base)) {
    pid_t owner_tid = shadows.stacks().at(*stack).owner;
    if (owner_tid == stopped.tid()) return;
    tracee::Thread* owner = FindThread(state, owner_tid);
    if (owner != nullptr && MayRun(*owner)) return Part(stopped, state, base);
    Memory memory{.process = state.process, .writer = stopped.tid()};
    TakeOver(memory, state, *stack, owner != nullptr ? *owner : stopped.thread(), For::kNobody);
    shadows.Free(*stack);
  }
  (void)shadows.Add(base, stopped.tid());
}

// That the base is listed for nobody does not mean that nobody runs with it: its owner is listed
// when it asks, and is not while another that has shared it with it lives. Its maker stands still.
void MeetThread(tracee::Stopped& stopped, ProcessState& state) {
  uint64_t base = stopped.regs().fs_base;
  if (!state.ring || base == 0) return;
  const auto& threads = state.process.threads();
  bool has_makers = std::any_of(threads.begin(), threads.end(), [&](const auto& entry) {
    tracee::Thread& other = *entry.second;
    return other.tid() != stopped.tid() && other.stopped() && other.Token().regs().fs_base == base;
  });
  bool shares = stopped.thread().role() == tracee::Thread::Role::kMemorySharer;
  bool is_barred = state.ring->shadows().IsBarred(base);
  if (!shares && (has_makers || is_barred)) return Part(stopped, state, base);
  KnowThread(stopped, state);
}

void ForgetThread(ProcessState& state, pid_t tid) {
  tracee::Thread* thread = FindThread(state, tid);
  if (!state.ring || thread == nullptr) return;
  ShadowTable& shadows = state.ring->shadows();
  shadows.Unbar(tid);
  auto stacks = shadows.stacks();
  for (const auto& [stack, about] : stacks) {
    if (about.owner != tid) continue;
    TakeOver({.process = state.process, .writer = state.id.pid}, state, stack, *thread,
             For::kNobody);
    shadows.Free(stack);
  }
}

void TakeOverFrames(tracee::Stopped& stopped, ProcessState& state) {
  if (!state.ring) return;
  ShadowTable& shadows = state.ring->shadows();
  uint64_t base = stopped.regs().fs_base;
  auto listed = shadows.Find(base);
  Memory memory{.process = state.process, .writer = stopped.tid()};
  if (listed) TakeOver(memory, state, *listed, stopped.thread());
  for (const auto& [stack, about] : shadows.stacks()) {
    if (about.base == base && listed != stack)
      TakeSome(memory, state, stack, 0, ~uint64_t{0}, stopped.thread());
  }
}

void TakeOverAllFrames(ProcessState& state) {
  if (!state.ring || state.process.threads().empty()) return;
  tracee::Thread& any = *state.process.threads().begin()->second;
  for (const auto& [stack, about] : state.ring->shadows().stacks()) {
    tracee::Thread* owner = FindThread(state, about.owner);
    TakeOver({.process = state.process, .writer = any.tid()}, state, stack,
             owner != nullptr ? *owner : any);
  }
}

void TakeOverForeignFrames(tracee::Stopped& stopped, ProcessState& state, uint64_t start,
                           uint64_t end) {
  if (!state.ring) return;
  ShadowTable& shadows = state.ring->shadows();
  auto own = shadows.Find(stopped.regs().fs_base);
  Memory memory{.process = state.process, .writer = stopped.tid()};
  for (const auto& [stack, about] : shadows.stacks()) {
    tracee::Thread* owner = FindThread(state, about.owner);
    if (own != stack && owner != nullptr) TakeSome(memory, state, stack, start, end, *owner);
  }
}

void InheritFrames(tracee::Stopped& child, ProcessState& state, const ProcessState& parent) {
  if (!parent.ring) return;
  const ShadowTable& shadows = parent.ring->shadows();
  Memory memory{.process = state.process, .writer = child.tid()};
  for (const auto& [stack, about] : shadows.stacks())
    MakePendingReturns(memory, state, shadows.Frames(stack), child.thread(), For::kChild);
}

std::optional<TakenFrame> TakeFrame(tracee::Stopped& stopped, ProcessState& state, uint64_t slot) {
  if (!state.ring) return std::nullopt;
  ShadowTable& shadows = state.ring->shadows();
  auto own = shadows.Find(stopped.regs().fs_base);
  std::vector<uint32_t> order;
  if (own) order.push_back(*own);
  for (uint32_t stack = 0; stack < shadows.touched(); ++stack) {
    if (stack != own) order.push_back(stack);
  }
  for (uint32_t stack : order) {
    std::vector<ShadowFrame> frames = shadows.Frames(stack);
    auto index = FindSlot(frames, slot);
    if (index && shadows.Take(stack, *index, slot)) {
      return TakenFrame{.frame = frames[*index], .foreign = stack != own};
    }
  }
  return std::nullopt;
}

}  // namespace probed::probe

#include "engine/probe/salvage.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>

#include "engine/probe/generated_code.h"
#include "engine/sys/proc.h"
#include "engine/sys/signal.h"

namespace probed::probe {
namespace {

// Signal handlers that run at the same time take less of a stack.
constexpr size_t kMostInterrupted = size_t{256} << 10;

bool IsAlive(const JournaledProcess& left) {
  auto stat = sys::ReadTaskStat(left.pid);
  return stat.ok() && stat->start_ticks == left.start_ticks;
}

const JournalRecord* FindFirst(const JournaledProcess& left, JournalRecord::Kind kind) {
  auto found = std::find_if(left.records.begin(), left.records.end(),
                            [kind](const JournalRecord& record) { return record.kind == kind; });
  return found == left.records.end() ? nullptr : &*found;
}

// Another program would not have our handler in that place.
bool IsSameImage(const sys::ProcessMemory& memory, const JournaledProcess& left) {
  const JournalRecord* handler = FindFirst(left, JournalRecord::kHandler);
  return handler == nullptr ||
         Rescue::StandsAt(memory, RemoteAddr{handler->address}, handler->other);
}

bool IsForkOf(const JournaledProcess& parent, pid_t pid, uint64_t start_ticks) {
  const JournalRecord* handler = FindFirst(parent, JournalRecord::kHandler);
  if (handler == nullptr || start_ticks < parent.start_ticks) return false;
  auto memory = sys::ProcessMemory::Open(pid);
  return memory.ok() && IsSameImage(*memory, parent);
}

bool IsBreakpoint(const sys::ProcessMemory& memory, const JournalRecord& site) {
  std::array<uint8_t, 15> present{};
  auto bytes = std::as_writable_bytes(std::span(present).first(site.length));
  if (bytes.empty() || !memory.Read(RemoteAddr{site.address}, bytes).ok()) return false;
  auto behind = site.original().subspan(1);
  if (present[0] != kBreakpointByte) return false;
  if (std::equal(behind.begin(), behind.end(), present.begin() + 1)) return true;
  return IsPatchedBehind(site.original(), std::span(present).first(site.length));
}

void AdoptSite(ProcessState& state, const JournalRecord& record) {
  auto instruction = arch::Decode(record.original(), record.address);
  if (!instruction.ok()) return;
  auto site = std::make_unique<Site>(RemoteAddr{record.address}, SitePlace{},
                                     std::move(instruction).value());
  if (record.other != 0) {
    auto copy = arch::BuildCopy(site->instruction(), record.address, record.other);
    if (copy.ok()) site->set_copy(RemoteAddr{record.other}, std::move(copy).value());
  }
  site->AdoptReferenceCounter(RemoteAddr{record.extra});
  if (IsBreakpoint(state.process.memory(), record)) site->InheritPatch();
  state.sites.Insert(std::move(site));
}

// A slot may have been hijacked more than once; the record that was written last is true of it, if
// it still holds the trampoline's address. Any thread will do: frames are found by their slot.
void AdoptReturns(ProcessState& state, const JournaledProcess& left) {
  if (state.trampoline.value == 0 || state.process.threads().empty()) return;
  std::map<uint64_t, const JournalRecord*> latest;
  for (const JournalRecord& record : left.records) {
    if (record.kind != JournalRecord::kReturn) continue;
    const JournalRecord*& found = latest[record.address];
    if (found == nullptr || found->extra < record.extra) found = &record;
  }
  ReturnStack& returns = ThreadState::Of(*state.process.threads().begin()->second).returns;
  for (const auto& [slot, record] : latest) {
    uint64_t word = 0;
    auto bytes = std::as_writable_bytes(std::span(&word, 1));
    if (!state.process.memory().Read(RemoteAddr{slot}, bytes).ok()) continue;
    if (word != state.trampoline.value) continue;
    PendingReturn frame;
    frame.slot = slot;
    frame.real_return = record->other;
    frame.trampoline = word;
    returns.Push(std::move(frame));
  }
}

const PendingReturn* FindReturn(const ProcessState& state, uint64_t slot) {
  for (const auto& [tid, thread] : state.process.threads()) {
    const PendingReturn* found = ThreadState::Of(*thread).returns.Find(slot);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// Each byte is the program's, ours, or a breakpoint on the way from one to the other.
bool IsOurs(std::span<const uint8_t> present, const JournalRecord& patch) {
  for (size_t i = 0; i < present.size(); ++i) {
    bool known = present[i] == patch.original()[i] || present[i] == patch.patched()[i] ||
                 (i == 0 && present[i] == kBreakpointByte);
    if (!known) return false;
  }
  return true;
}

// In a jump beside the site, to which that site's own jump leads: nothing has been displaced yet.
void LeaveIsland(std::span<tracee::Stopped* const> threads, const JournalRecord& patch) {
  if (patch.address == patch.other) return;
  for (tracee::Stopped* thread : threads) {
    if (thread->regs().rip == patch.address) thread->mutable_regs().rip = patch.other;
  }
}

}  // namespace

// Half a jump may stand behind the breakpoint, and a reference counter wants counting.
Result<uint32_t> RestoreBreakpoints(const JournaledProcess& left) {
  PROBED_TRY(auto memory, sys::ProcessMemory::Open(left.pid));
  uint32_t restored = 0;
  if (!IsAlive(left) || !IsSameImage(memory, left)) return restored;
  std::unordered_set<uint64_t> jumps;
  for (const JournalRecord& record : left.records)
    if (record.kind == JournalRecord::kPatch) jumps.insert(record.other);
  for (const JournalRecord& record : left.records) {
    bool simple = record.kind == JournalRecord::kSite && record.extra == 0;
    if (!simple || jumps.contains(record.address) || !IsBreakpoint(memory, record)) continue;
    std::byte original{record.bytes[0]};
    if (memory.Write(RemoteAddr{record.address}, {&original, 1}, left.pid).ok()) ++restored;
  }
  return restored;
}

std::vector<JournaledProcess> FindForks(std::span<const JournaledProcess> known) {
  std::vector<JournaledProcess> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    pid_t pid = std::atoi(entry.path().filename().c_str());
    auto stat = sys::ReadTaskStat(pid);
    if (pid <= 0 || !stat.ok()) continue;
    auto is_it = [&](const JournaledProcess& left) {
      return left.pid == pid && left.start_ticks == stat->start_ticks;
    };
    if (std::any_of(known.begin(), known.end(), is_it)) continue;
    auto parent = std::find_if(known.begin(), known.end(), [&](const JournaledProcess& left) {
      return IsForkOf(left, pid, stat->start_ticks);
    });
    if (parent == known.end()) continue;
    found.push_back(*parent);
    found.back().pid = pid;
    found.back().start_ticks = stat->start_ticks;
  }
  return found;
}

void AdoptLeftovers(ProcessState& state, const JournaledProcess& left) {
  if (!IsSameImage(state.process.memory(), left)) return;
  for (const JournalRecord& record : left.records) {
    if (record.kind == JournalRecord::kSite) AdoptSite(state, record);
  }
  const JournalRecord* trampoline = FindFirst(left, JournalRecord::kTrampoline);
  if (trampoline != nullptr) state.trampoline = RemoteAddr{trampoline->address};
  const JournalRecord* handler = FindFirst(left, JournalRecord::kHandler);
  if (handler != nullptr) state.rescue = Rescue(RemoteAddr{handler->address}, handler->other);
  AdoptReturns(state, left);
}

Status UndoJumps(std::span<tracee::Stopped* const> threads, const ProcessState& state,
                 const JournaledProcess& left) {
  if (threads.empty() || !IsSameImage(state.process.memory(), left)) return {};
  tracee::Stopped& stopped = *threads.front();
  for (const JournalRecord& record : left.records) {
    if (record.kind != JournalRecord::kPatch) continue;
    std::vector<uint8_t> present(record.length);
    auto bytes = std::as_writable_bytes(std::span(present));
    if (!stopped.ReadMemory(RemoteAddr{record.address}, bytes).ok()) continue;
    if (!IsOurs(present, record)) continue;
    LeaveIsland(threads, record);
    std::vector<uint8_t> original(record.original().begin(), record.original().end());
    Site* site = state.sites.Find(RemoteAddr{record.address});
    if (site != nullptr) original[0] = kBreakpointByte;
    PROBED_RETURN_IF_ERROR(
        stopped.WriteMemory(RemoteAddr{record.address}, std::as_bytes(std::span(original))));
    if (site != nullptr && !site->armed()) site->InheritPatch();
  }
  return {};
}

void EndCall(tracee::Stopped& stopped, const tracee::CallUnderWay& call) {
  if (stopped.tid() != call.tid) return;
  if (call.place.Holds(RemoteAddr{stopped.regs().rip})) {
    stopped.mutable_regs() = call.regs;
    stopped.FlushRegs();
  }
  // Having run into an int3 it looks like a thread that had SIGTRAP blocked (KeepTrapSignal).
  constexpr uint64_t kTrap = sys::SignalBit(SIGTRAP);
  auto mask = stopped.ReadSignalMask();
  if (!mask || (*mask | kTrap) != (tracee::kMaskOfCalls | kTrap)) return;
  stopped.WriteSignalMask(call.signal_mask);
  ThreadState::Of(stopped.thread()).signal_mask = call.signal_mask;
}

void CorrectInterrupted(tracee::Stopped& stopped, const ProcessState& state) {
  const uint64_t trampoline = state.trampoline.value;
  if (trampoline == 0) return;
  // struct sigcontext: the ip follows the stack pointer.
  std::vector<uint64_t> stack(kMostInterrupted / sizeof(uint64_t));
  uint64_t start = stopped.regs().rsp & ~uint64_t{7};
  size_t read = stopped.ReadSome(RemoteAddr{start}, std::as_writable_bytes(std::span(stack)));
  stack.resize(read / sizeof(uint64_t));
  for (size_t i = 1; i < stack.size(); ++i) {
    if (stack[i] != trampoline && stack[i] != trampoline + 1) continue;
    const PendingReturn* frame = FindReturn(state, stack[i - 1] - sizeof(uint64_t));
    if (frame == nullptr) continue;
    (void)stopped.WriteMemory(RemoteAddr{start + i * sizeof(uint64_t)},
                              std::as_bytes(std::span(&frame->real_return, 1)));
  }
}

}  // namespace probed::probe

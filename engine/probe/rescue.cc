#include "engine/probe/rescue.h"

#include <algorithm>
#include <csignal>
#include <span>
#include <utility>
#include <vector>

#include "engine/tracee/process.h"

namespace probed::probe {
namespace {

static_assert(sizeof(SignalAction) == detour::kActionWords * sizeof(uint64_t));

// linux/signal.h; the C library does not show it.
constexpr uint64_t kSaRestorer = 0x04000000;

// The same in its children, and in no other process that lives.
uint64_t MakeId(const tracee::Process& process) {
  constexpr int kPidBits = 22;  // PID_MAX_LIMIT
  return process.start_ticks() << kPidBits | static_cast<uint64_t>(process.pid());
}

}  // namespace

Status Rescue::Prepare(tracee::Stopped& stopped, ProcessJournal& journal, RemoteAddr near) {
  if (prepared()) return {};
  tracee::CodeArena& arena = stopped.process().arena();
  uint64_t id = MakeId(stopped.process());
  std::vector<uint8_t> code = detour::AssembleTrapHandler(id).code;
  PROBED_TRY(RemoteAddr head, arena.Allocate(stopped, tracee::Window::Around(near), code.size()));
  Status made = stopped.WriteMemory(head, std::as_bytes(std::span(code)));
  JournalRecord record{.kind = JournalRecord::kHandler, .address = head.value, .other = id};
  if (made.ok()) made = journal.Put(record);
  if (!made.ok()) {
    arena.Free(head, code.size());
    return made;
  }
  head_ = head;
  id_ = id;
  return {};
}

SignalAction Rescue::Action() const {
  detour::TrapHandlerCode code = detour::AssembleTrapHandler(id_);
  // Nothing may interrupt it: a handler of the program that ran into a breakpoint while SIGTRAP is
  // blocked would be killed (force_sig_info_to_task).
  constexpr uint64_t kAllSignals = ~uint64_t{0};
  return {.handler = head_.value + code.entry,
          .flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | kSaRestorer,
          .restorer = head_.value + code.restorer,
          .mask = kAllSignals};
}

bool Rescue::Contains(RemoteAddr ip) const {
  return prepared() && ip >= head_ && ip < head_ + detour::AssembleTrapHandler(id_).code.size();
}

Status Rescue::SetProgramsAction(tracee::Stopped& stopped,
                                 const std::optional<SignalAction>& action) const {
  SignalAction stored = action.value_or(SignalAction{});
  RemoteAddr place = head_ + detour::AssembleTrapHandler(id_).action;
  return stopped.WriteMemory(place, std::as_bytes(std::span(&stored, 1)));
}

std::optional<SignalAction> Rescue::ProgramsAction(const sys::ProcessMemory& memory) const {
  SignalAction stored{};
  RemoteAddr place = head_ + detour::AssembleTrapHandler(id_).action;
  bool read = memory.Read(place, std::as_writable_bytes(std::span(&stored, 1))).ok();
  return read && stored.handler != 0 ? std::optional(stored) : std::nullopt;
}

// Whoever has saved ours later has done so in the place of the first.
Status Rescue::SetFormerAction(tracee::Stopped& stopped,
                               const std::optional<SignalAction>& action) {
  if (former_) return {};
  former_ = action.value_or(SignalAction{});
  const uint64_t handler = former_->handler;
  RemoteAddr place = head_ + detour::AssembleTrapHandler(id_).former;
  return stopped.WriteMemory(place, std::as_bytes(std::span(&handler, 1)));
}

Status Rescue::SetUse(tracee::Stopped& stopped, detour::TrapHandlerUse use) const {
  RemoteAddr place = head_ + detour::AssembleTrapHandler(id_).use;
  return stopped.WriteMemory(place, std::as_bytes(std::span(&use, 1)));
}

void Rescue::NoteSaved(tracee::Stopped& stopped) {
  if (std::exchange(may_be_saved_, true)) return;
  (void)SetUse(stopped, detour::TrapHandlerUse::kMayBeCalled);
}

Status Rescue::Abandon(tracee::Stopped& stopped) const {
  if (former_) PROBED_RETURN_IF_ERROR(SetProgramsAction(stopped, *former_));
  return SetUse(stopped, detour::TrapHandlerUse::kLeft);
}

bool Rescue::StandsAt(const sys::ProcessMemory& memory, RemoteAddr head, uint64_t id) {
  detour::TrapHandlerCode expected = detour::AssembleTrapHandler(id);
  std::vector<uint8_t> present(expected.code.size());
  if (!memory.Read(head, std::as_writable_bytes(std::span(present))).ok()) return false;
  std::fill(present.begin() + expected.action,
            present.begin() + expected.use + sizeof(detour::TrapHandlerUse), uint8_t{0});
  return present == expected.code;
}

}  // namespace probed::probe

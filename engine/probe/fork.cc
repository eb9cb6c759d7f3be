#include "engine/probe/fork.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "engine/sys/proc.h"

namespace probed::probe {

void InheritState(const ProcessState& parent, ProcessState& child, tracee::Thread& thread) {
  for (const Site* site : parent.sites.Sorted()) {
    auto copy = std::make_unique<Site>(*site);
    if (copy->armed()) copy->InheritPatch();
    child.sites.Insert(std::move(copy));
  }
  child.sites.CopyTrampolines(parent.sites);
  child.rescue = parent.rescue;
  child.salvaged = parent.salvaged;
  (void)child.journal.CopyFrom(parent.journal);
  child.trampoline = parent.trampoline;
  child.routines = parent.routines;
  child.loading = parent.loading;
  child.switches_contexts = parent.switches_contexts;
  child.has_generated_sites = parent.has_generated_sites;
  child.watches_maps = parent.watches_maps;
  child.maps_code_itself = parent.maps_code_itself;
  child.trap_action = parent.trap_action;
  child.segv_action = parent.segv_action;
  child.bus_action = parent.bus_action;
  child.unwinders_seen = parent.unwinders_seen;
  child.map_calls_seen = parent.map_calls_seen;
  // Frames are found by stack slot, so those of the parent's other threads, whose stacks were
  // copied too, do no harm, and nobody has to know which thread forked.
  ReturnStack& returns = ThreadState::Of(thread).returns;
  for (const auto& [tid, other] : parent.process.threads()) {
    for (const auto& frame : ThreadState::Of(*other).returns.frames()) {
      PendingReturn inherited = frame.Inherit();
      auto record = child.journal.AddReturn(frame.slot, frame.real_return);
      if (record.ok()) inherited.record = std::move(record).value();
      returns.Push(std::move(inherited));
    }
  }
}

JournaledProcess DescribeCopy(const ProcessState& parent, pid_t child, uint64_t start_ticks) {
  JournaledProcess copy{.pid = child,
                        .start_ticks = start_ticks,
                        .records = parent.journal.Records(),
                        .call = std::nullopt};
  for (const auto& [tid, thread] : parent.process.threads()) {
    for (const auto& frame : ThreadState::Of(*thread).returns.frames()) {
      copy.records.push_back({.kind = JournalRecord::kReturn,
                              .address = frame.slot,
                              .other = frame.real_return,
                              .extra = 0});
    }
  }
  return copy;
}

std::string ExecutableOf(pid_t pid) {
  std::error_code error;
  auto path = std::filesystem::read_symlink(sys::ProcPath(pid, "exe"), error);
  return error ? "" : path.string();
}

}  // namespace probed::probe

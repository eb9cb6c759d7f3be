#pragma once
// The SIGTRAP handler (engine/detour/trap_handler.h) in one process. Tracer thread only.

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "base/result.h"
#include "engine/detour/trap_handler.h"
#include "engine/probe/patch_journal.h"
#include "engine/probe/signal_action.h"
#include "engine/sys/process_memory.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class Rescue {
 public:
  Rescue() = default;
  // Of a process that has it already.
  Rescue(RemoteAddr head, uint64_t id) : installed(true), head_(head), id_(id) {}

  // Whether its code is in the process.
  bool prepared() const { return head_.value != 0; }
  Status Prepare(tracee::Stopped& stopped, ProcessJournal& journal, RemoteAddr near);
  SignalAction Action() const;
  // What the handler puts back when it has to: the program's own action, or the default one.
  Status SetProgramsAction(tracee::Stopped& stopped,
                           const std::optional<SignalAction>& action) const;
  std::optional<SignalAction> ProgramsAction(const sys::ProcessMemory& memory) const;
  bool Contains(RemoteAddr ip) const;
  // It stands in the place of `action`, which a handler that replaces and saves it may call.
  Status SetFormerAction(tracee::Stopped& stopped, const std::optional<SignalAction>& action);
  // The program has replaced it, and may have saved it (sigaction(2)): it must stay mapped.
  void NoteSaved(tracee::Stopped& stopped);
  bool may_be_saved() const { return may_be_saved_; }
  // We leave it behind, for the program to call or to put back: as its former action.
  Status Abandon(tracee::Stopped& stopped) const;

  // Whether it stands in a copy of the process's memory.
  bool StandsIn(const sys::ProcessMemory& memory) const {
    return prepared() && StandsAt(memory, head_, id_);
  }
  // Whether the process, or one that it was copied from, was given the handler `id` there.
  static bool StandsAt(const sys::ProcessMemory& memory, RemoteAddr head, uint64_t id);

  // The action in force is ours: trap_signal.h.
  bool installed = false;

 private:
  Status SetUse(tracee::Stopped& stopped, detour::TrapHandlerUse use) const;

  RemoteAddr head_;
  uint64_t id_ = 0;
  bool may_be_saved_ = false;
  std::optional<SignalAction> former_;  // nothing: not installed yet, or not by us
};

}  // namespace probed::probe

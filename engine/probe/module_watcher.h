#pragma once
// Keeps the sites of a process in step with what it has mapped: arms pending probes when their file
// appears and forgets sites whose mapping is gone. From an exec to the program's entry point every
// system call is looked at, so that a library is armed before any of its code runs; afterwards the
// dynamic linker tells (r_brk, <link.h>). Tracer thread only.

#include <vector>

#include "engine/probe/planner.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

class ModuleWatcher {
 public:
  explicit ModuleWatcher(FileCache& files) : files_(files), planner_(files) {}

  // A new image: nothing of it has run.
  void OnExec(tracee::Stopped& stopped, ProcessState& state);
  // An image that is running already.
  void OnAttach(tracee::Stopped& stopped, ProcessState& state);
  void OnSyscallExit(tracee::Stopped& stopped, ProcessState& state);
  void OnProgramEntry(tracee::Stopped& stopped, ProcessState& state, RemoteAddr site);
  // Looks at the maps again.
  void Refresh(tracee::Stopped& stopped, ProcessState& state);
  // Behind a system call of the program's own. Whether it has changed what is mapped of code.
  bool OnMapped(tracee::Stopped& stopped, ProcessState& state);
  bool OnProtected(tracee::Stopped& stopped, ProcessState& state);
  bool OnUnmapped(tracee::Stopped& stopped, ProcessState& state);
  // Such calls are looked at only for as long as somebody needs it: each costs a trap.
  static bool IsWatchOutdated(const ProcessState& state);
  void SyncWatch(tracee::Stopped& stopped, ProcessState& state);
  // Once return addresses are hijacked, unwinders must be shown the real ones.
  void HookUnwinders(tracee::Stopped& stopped, ProcessState& state);

 private:
  void ArmPending(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  // A library's data is mapped after its code.
  void FindReferenceCounters(tracee::Stopped& stopped, ProcessState& state,
                             const AddressSpace& space);
  void HookLinker(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void HookUnwinders(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void SyncWatch(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void WatchMaps(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void HookOffset(tracee::Stopped& stopped, ProcessState& state, const elf::Module& module,
                  FileOffset offset, Hook hook);
  static void RemoveHook(tracee::Stopped& stopped, ProcessState& state, Hook hook);
  bool InstallHook(tracee::Stopped& stopped, ProcessState& state, RemoteAddr address, Hook hook,
                   SitePlace place);

  FileCache& files_;
  Planner planner_;
};

}  // namespace probed::probe

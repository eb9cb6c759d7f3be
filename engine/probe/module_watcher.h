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
  // Once return addresses are hijacked, unwinders must be shown the real ones.
  void HookUnwinders(tracee::Stopped& stopped, ProcessState& state);

 private:
  void ForgetUnmapped(ProcessState& state, const AddressSpace& space);
  void ArmPending(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  // A library's data is mapped after its code.
  static void FindReferenceCounters(tracee::Stopped& stopped, ProcessState& state,
                                    const AddressSpace& space);
  void HookLinker(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void HookUnwinders(tracee::Stopped& stopped, ProcessState& state, const AddressSpace& space);
  void HookOffset(tracee::Stopped& stopped, ProcessState& state, const elf::Module& module,
                  FileOffset offset, Hook hook);
  bool InstallHook(tracee::Stopped& stopped, ProcessState& state, RemoteAddr address, Hook hook);

  FileCache& files_;
  Planner planner_;
};

}  // namespace probed::probe

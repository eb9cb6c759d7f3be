#pragma once
// The tracer's observer: hands each stop to who knows about it, and keeps which processes belong to
// which root target. Tracer thread only.

#include <functional>
#include <memory>
#include <string>

#include "engine/event/hub.h"
#include "engine/probe/file_cache.h"
#include "engine/probe/hit_handler.h"
#include "engine/probe/installer.h"
#include "engine/probe/module_watcher.h"
#include "engine/probe/optimizer.h"
#include "engine/probe/patch_journal.h"
#include "engine/probe/process_state.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

class Controller final : public tracee::Observer {
 public:
  // Told when a process leaves, before its state dies.
  using OnGone = std::function<void(const ProcessState&, event::TargetChange)>;

  // Told of every process that becomes a target.
  using OnNew = std::function<void(ProcessState&)>;

  // `patches` may be null: nobody can undo what we have done if we die.
  Controller(event::Hub& hub, FileCache& files, OptimizerOptions optimization,
             std::shared_ptr<PatchJournal> patches, OnGone on_gone, OnNew on_new);
  void set_tracer(tracee::Tracer* tracer);

  // Makes a freshly attached or launched process a root target.
  Result<ProcessState*> Adopt(tracee::Process& process);
  Result<DetachReport> Detach(ProcessState& state);
  // Takes charge of what a dead daemon left in a process just attached to, before any stop of it is
  // dealt with.
  void Adopt(tracee::Process& process, const JournaledProcess& left);
  // Then: takes that out and lets the process go.
  Result<DetachReport> Salvage(tracee::Process& process, const JournaledProcess& left);
  Installer& installer() { return installer_; }
  Optimizer& optimizer() { return optimizer_; }
  // What was recorded before the call is published when it returns. Any thread.
  event::Drainer& drainer() { return drainer_; }
  void Flush() { drainer_.Flush(); }
  void CountRecorded() { drainer_.Count(); }

  tracee::Resumption OnTrap(tracee::Stopped& stopped) override;
  tracee::Resumption OnSignal(tracee::Stopped& stopped, const siginfo_t& info) override;
  void OnThreadStart(tracee::Stopped& stopped) override;
  void OnThreadEnding(tracee::Process& process, pid_t tid, const user_regs_struct& regs) override;
  void OnThreadExit(tracee::Process& process, pid_t tid) override;
  tracee::ChildChoice OnFork(tracee::Process& parent, tracee::Process& child,
                             tracee::Stopped& child_stopped) override;
  bool OnVfork(tracee::Process& parent, pid_t child) override;
  tracee::Resumption OnExec(tracee::Stopped& stopped) override;
  tracee::ChildChoice OnChildExec(tracee::Process& parent, tracee::Process& child,
                                  tracee::Stopped& child_stopped) override;
  bool OnStray(tracee::Process& parent, pid_t child) override;
  tracee::Resumption OnSyscall(tracee::Stopped& stopped, bool is_exit) override;
  void OnAbandon(tracee::Process& process) override;
  void OnExit(tracee::Process& process, int wait_status) override;

 private:
  static std::shared_ptr<ProbeGroup> MakeGroup(const tracee::Process& process);
  Result<DetachReport> TrySalvage(tracee::Process& process, const JournaledProcess& left);
  ProcessState& MakeState(tracee::Process& process, std::shared_ptr<ProbeGroup> group);
  void Abandon(tracee::Process& process);
  void StartImage(tracee::Stopped& stopped, ProcessState& state);
  void LiftReturns(tracee::Stopped& stopped, ProcessState& state);
  void RunHooks(tracee::Stopped& stopped, ProcessState& state, RemoteAddr site);
  void Announce(const ProcessState& state, event::TargetChange change, int exit_status,
                std::string detail);

  static void LeaveHandler(tracee::Stopped& stopped, const ProcessState& state);

  event::Hub& hub_;
  event::Drainer drainer_;
  std::shared_ptr<PatchJournal> patches_;
  Optimizer optimizer_;
  ModuleWatcher watcher_;
  HitHandler hits_;
  Installer installer_;
  OnGone on_gone_;
  OnNew on_new_;
  tracee::Tracer* tracer_ = nullptr;
};

}  // namespace probed::probe

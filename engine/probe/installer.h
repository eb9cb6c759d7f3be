#pragma once
// Creates, removes, enables and disables probes in every process of a group, all or none.
// Tracer thread only, outside observer callbacks.

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/probe/module_watcher.h"
#include "engine/probe/optimizer.h"
#include "engine/probe/planner.h"
#include "engine/probe/process_state.h"
#include "engine/probe/return_handler.h"
#include "engine/tracee/tracer.h"

namespace probed::probe {

struct ProbeError {
  std::shared_ptr<Probe> probe;
  Error error;
};

class Installer {
 public:
  Installer(FileCache& files, ModuleWatcher& watcher, ReturnHandler& returns, Optimizer& optimizer)
      : planner_(files), watcher_(watcher), returns_(returns), optimizer_(optimizer) {}
  void set_tracer(tracee::Tracer* tracer) { tracer_ = tracer; }

  // Not empty: nothing was changed. A probe whose file is not mapped is left pending.
  std::vector<ProbeError> Create(ProbeGroup& group,
                                 const std::vector<std::shared_ptr<Probe>>& probes);
  // What Create would do, for one site of each probe that would be armed. Changes nothing.
  std::vector<std::unique_ptr<Site>> Preview(ProbeGroup& group,
                                             const std::vector<std::shared_ptr<Probe>>& probes,
                                             std::vector<ProbeError>& errors);
  Status Remove(ProbeGroup& group, std::span<const std::shared_ptr<Probe>> probes);
  Status SetEnabled(ProbeGroup& group, std::span<const std::shared_ptr<Probe>> probes,
                    bool enabled);
  // After a change of Probe::selection.
  Status SyncSelections(ProbeGroup& group) { return SyncAll(group); }

 private:
  std::vector<PlannedSite> PlanAll(ProcessState& state,
                                   const std::vector<std::shared_ptr<Probe>>& probes,
                                   std::vector<ProbeError>& errors);
  // The process runs while it is planned for. What was refused because it executed another program
  // meanwhile is planned again.
  std::vector<PlannedSite> PlanForImage(ProcessState& state,
                                        const std::vector<std::shared_ptr<Probe>>& probes,
                                        std::vector<ProbeError>& errors);
  void CreateIn(ProcessState& state, const std::vector<std::shared_ptr<Probe>>& probes,
                std::vector<ProbeError>& errors);
  Status InstallIn(ProcessState& state, const std::vector<PlannedSite>& plans);
  // Jumps become breakpoints in the one stop of all threads in which `work` is done then; where
  // there are none to change, one stopped thread does for it.
  using FindSites = std::function<std::vector<Site*>()>;
  Status WithBreakpoints(ProcessState& state, const FindSites& find,
                         const std::function<Status(tracee::Stopped&)>& work);
  void SyncWatch(ProcessState& state);
  void TellObstacles(ProcessState& state) const;
  void RequestOptimization(const ProbeGroup& group);
  // Stops one thread of each process and brings its sites in step with who wants them.
  Status SyncAll(ProbeGroup& group);
  // The same for the returns that are waited for; stops every thread if there are any to give up.
  Status GiveUpReturns(ProbeGroup& group);

  Planner planner_;
  ModuleWatcher& watcher_;
  ReturnHandler& returns_;
  Optimizer& optimizer_;
  tracee::Tracer* tracer_ = nullptr;
};

}  // namespace probed::probe

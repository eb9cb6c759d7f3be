#pragma once
// The inside of the facade. What the tracer thread owns and what callers' threads own is kept
// apart: see the comments. Lock order: control, then the tracer's queue.

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"
#include "engine/event/hub.h"
#include "engine/kernel/control.h"
#include "engine/lang/definition_set.h"
#include "engine/probe/controller.h"
#include "engine/probe/file_cache.h"
#include "engine/tracee/tracer.h"
#include "engine/uprobe_place.h"

namespace probed::engine {

class ProbeRequest;

// One process that is or was a target.
struct Target {
  TargetInfo info;                       // as of the end, once it has ended
  probe::ProcessState* state = nullptr;  // null: ended
  std::shared_ptr<probe::ProbeGroup> group;
};

struct Engine::State {
  State(const EngineOptions& engine_options, std::shared_ptr<probe::PatchJournal> patches);

  // Tracer thread.
  Target* FindTarget(TargetId id);
  void Track(probe::ProcessState& state);
  void OnGone(const probe::ProcessState& state, event::TargetChange change);
  TargetInfo Describe(const Target& target) const;
  // Any thread but the tracer's: what detours have recorded and counted until now is in the
  // counters that `task` sees on the tracer thread, published or not.
  template <class Task>
  auto RunCounted(Task task) {
    controller.CountRecorded();
    return Run([&] {
      CountDetours();
      LookAtGeneratedCode();
      return task();
    });
  }
  void CountDetours();         // tracer thread
  void LookAtGeneratedCode();  // tracer thread
  // Tracer thread.
  std::vector<probe::ProcessState*> MarkLeaving(const probe::ProbeGroup& group, TargetId target);
  // A site of each probe, armed if there is one.
  using SiteIndex = std::unordered_map<ProbeId, const probe::Site*>;
  static SiteIndex IndexSites(const probe::ProbeGroup& group);
  ProbeInfo Describe(const probe::Probe& probe, const SiteIndex& sites) const;
  std::string HowItEnded(TargetId root) const;
  // Those of targets that are forgotten, and of an earlier life of `fresh`. Under `control`.
  void DropOldDefinitions(TargetId fresh);
  using ProbesByGroup =
      std::map<std::shared_ptr<probe::ProbeGroup>, std::vector<std::shared_ptr<probe::Probe>>>;
  // All or nothing: the processes that have the probe are as before when one of them refuses.
  Status Select(probe::Probe& probe, probe::Selection selection);
  // Caller's thread, under `control`.
  Status SwitchInTargets(const std::vector<ProbeId>& ids, bool enabled);
  Result<ProbesByGroup> Collect(const std::vector<ProbeId>& ids);

  // Caller's thread, under `control`.
  std::vector<ProbeInfo> Install(probe::ProbeGroup& group, ProbeRequest& request);
  // What Install would come to; changes nothing.
  std::vector<ProbeInfo> Preview(probe::ProbeGroup& group, ProbeRequest& request);

  // Caller's thread, under `control`: all of them or an error.
  std::vector<ProbeInfo> CreateInKernel(const std::vector<kernel::ProbeRequest>& requests,
                                        const CreateOptions& how, std::vector<LineError>& errors);
  // Any thread but the tracer's.
  ProbeInfo Describe(const kernel::ProbeView& probe) const;
  std::vector<ProbeInfo> ListInKernel();
  std::vector<SiteInfo> ListKernelSites();
  struct PartedIds {
    std::vector<ProbeId> user, kernel;
  };
  PartedIds Part(const std::vector<ProbeId>& ids);

  // Any thread but the tracer's.
  std::vector<ChangedCode> ListChangedCode();
  // Any thread: what a living target has mapped.
  Result<probe::AddressSpace> ReadSpace(TargetId target);

  // Any thread. TARGET_NOT_FOUND, and what Planner::PlanAddress says.
  Result<Explanation> ExplainAddress(std::optional<TargetId> id, int pid, RemoteAddr address);

  // Any thread: runs `task` on the tracer thread and returns what it returns.
  template <class Task>
  auto Run(Task task) {
    std::optional<decltype(task())> result;
    tracer->Call([&] { result.emplace(task()); });
    return std::move(*result);
  }

  const EngineOptions options;
  event::Hub hub;
  probe::FileCache files;
  probe::Controller controller;
  kernel::Control kernel;

  // Tracer thread only.
  std::map<TargetId, Target> targets;
  std::deque<TargetId> ended;  // oldest first, bounded
  std::map<ProbeId, std::shared_ptr<probe::Probe>> probes;

  // Held by whoever changes targets or probes, for the whole of the change.
  std::mutex control;
  std::map<TargetId, lang::DefinitionSet> definitions;  // by root; of both dialects
  ProbeId last_probe = 0;

  // Last: its thread uses what is above.
  std::unique_ptr<tracee::Tracer> tracer;

 private:
  void ForgetOldest();
  void ForgetProbes(TargetId id);
};

Error TargetNotFound(TargetId id);

}  // namespace probed::engine

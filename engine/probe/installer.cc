#include "engine/probe/installer.h"

#include <algorithm>
#include <chrono>
#include <unordered_set>
#include <utility>

#include "engine/probe/generated_code.h"
#include "engine/probe/image_stop.h"
#include "engine/probe/stop_deadline.h"
#include "engine/probe/transaction.h"
#include "engine/probe/trap_signal.h"
#include "engine/probe/unmapped.h"

namespace probed::probe {
namespace {

// The process went away while we worked, or its program did: nothing is left to install or to undo.
bool IsGone(const Error& error) {
  return error.reason == "PROCESS_GONE" || error.reason == "PROCESS_NOT_FOUND" ||
         error.reason == "PROGRAM_REPLACED";
}

// Between the plan and the stop the program has unmapped code, or put other code there.
bool IsPlanOutdated(const Status& installed) {
  if (installed.ok()) return false;
  const std::string& reason = installed.error().reason;
  return reason == "MEMORY_UNREADABLE" || reason == "SITE_CHANGED";
}

// Its detour was made for other probes than it has now, or for other filters.
bool IsOutdated(const Site& site) {
  const auto& optimization = site.optimization();
  return optimization &&
         (!site.wanted() || site.HasDisabledReturn() || !optimization->Serves(site.probes()));
}

std::vector<Site*> ChangedSites(const ProcessState& state) {
  std::vector<Site*> changed = state.sites.Sorted();
  std::erase_if(changed, [](const Site* site) {
    return site->wanted() == site->armed() && !IsOutdated(*site);
  });
  return changed;
}

std::vector<Site*> OutdatedSites(const ProcessState& state) {
  std::vector<Site*> outdated = state.sites.Optimized();
  std::erase_if(outdated, [](const Site* site) { return !IsOutdated(*site); });
  return outdated;
}

// Jumps on the bytes that breakpoints are planned for. With the first return probe that is where
// stacks are unwound as well, wherever it may be (ModuleWatcher::HookUnwinders).
std::vector<Site*> InTheWay(const ProcessState& state, const std::vector<PlannedSite>& plans) {
  std::vector<Site*> sites;
  for (const auto& plan : plans) {
    if (plan.probe && plan.probe->hijacks() && state.unwinders_seen.empty()) {
      return state.sites.Optimized();
    }
    Site* site = state.sites.FindDisplacing(plan.address);
    if (site != nullptr && std::find(sites.begin(), sites.end(), site) == sites.end()) {
      sites.push_back(site);
    }
  }
  return sites;
}

}  // namespace

std::vector<PlannedSite> Installer::PlanAll(ProcessState& state,
                                            const std::vector<std::shared_ptr<Probe>>& probes,
                                            std::vector<ProbeError>& errors) {
  std::vector<PlannedSite> plans;
  auto space = AddressSpace::Read(state.id.pid);
  if (!space.ok()) return plans;  // exiting
  for (const auto& probe : probes) {
    Status planned = planner_.Plan(state, *space, probe, plans);
    if (!planned.ok()) errors.push_back({.probe = probe, .error = std::move(planned).error()});
  }
  return plans;
}

std::vector<PlannedSite> Installer::PlanForImage(ProcessState& state,
                                                 const std::vector<std::shared_ptr<Probe>>& probes,
                                                 std::vector<ProbeError>& errors) {
  constexpr int kMaxAttempts = 10;
  std::vector<PlannedSite> plans;
  std::vector<ProbeError> refused;
  for (int i = 0; i < kMaxAttempts; ++i) {
    uint64_t planned_for = state.image;
    refused.clear();
    plans = PlanAll(state, probes, refused);
    if (refused.empty()) break;
    // An exec is known of once a thread has stopped since.
    auto nothing = [](tracee::Stopped&) -> Status { return {}; };
    (void)tracer_->WithOneStopped(state.process, kStopDeadline, nothing);
    if (state.image == planned_for) break;
  }
  errors.insert(errors.end(), refused.begin(), refused.end());
  return plans;
}

Status Installer::WithBreakpoints(ProcessState& state, const FindSites& find,
                                  const std::function<Status(tracee::Stopped&)>& work) {
  // Generated code may be written to by any thread.
  bool one_will_do = find().empty() && GeneratedSites(state).empty();
  if (one_will_do) return tracer_->WithOneStopped(state.process, kStopDeadline, work);
  auto unoptimize = [&](std::vector<tracee::Stopped*>& threads) -> Status {
    std::vector<Site*> sites = find();
    Status undone = optimizer_.Unoptimize(threads, state, sites);
    // An overwritten site is no obstacle: it is no site any more.
    if (!undone.ok() && undone.error().reason != "SITE_OVERWRITTEN") return undone;
    Status done = work(*threads.front());
    return undone.ok() ? done : undone;
  };
  return tracer_->WithAllStopped(state.process, kStopDeadline, unoptimize);
}

// What will be no jump for what it is itself is told at once, before its file is analysed.
void Installer::TellObstacles(ProcessState& state) const {
  for (Site* site : state.sites.Sorted())
    if (site->undecided()) site->set_obstacle(optimizer_.ObstacleOf(*site));
}

void Installer::RequestOptimization(const ProbeGroup& group) {
  for (ProcessState* state : group.processes) {
    optimizer_.SyncModes(*state);
    TellObstacles(*state);
    optimizer_.Request(state->id);
  }
}

// Most of the work is done while the process runs between two stops. If it executes another program
// there, the probes are the group's already, so the exec arms them.
Status Installer::InstallIn(ProcessState& state, const std::vector<PlannedSite>& plans) {
  const uint64_t planned_for = state.image;
  Transaction transaction(state, plans);
  auto install = [&](tracee::Stopped& stopped) -> Status {
    if (state.image != planned_for) return {};
    LookAtTrapAction(stopped, state);
    PROBED_RETURN_IF_ERROR(transaction.Install(stopped));
    watcher_.HookUnwinders(stopped, state);
    watcher_.SyncWatch(stopped, state);
    return {};
  };
  auto in_the_way = [&] { return InTheWay(state, plans); };
  Status installed = transaction.Reserve(StopOfImage(*tracer_, state, planned_for));
  if (!installed.ok() && !IsGone(installed.error())) transaction.GiveBack();
  if (installed.ok()) installed = transaction.Build();
  if (installed.ok()) installed = WithBreakpoints(state, in_the_way, install);
  if (!installed.ok() && IsGone(installed.error())) return {};
  return installed;
}

// Where nothing is to be installed yet, the file that is waited for must not be missed.
void Installer::SyncWatch(ProcessState& state) {
  if (!watcher_.IsWatchOutdated(state)) return;
  (void)tracer_->WithOneStopped(state.process, kStopDeadline,
                                [&](tracee::Stopped& stopped) -> Status {
                                  watcher_.SyncWatch(stopped, state);
                                  return {};
                                });
}

void Installer::CreateIn(ProcessState& state, const std::vector<std::shared_ptr<Probe>>& probes,
                         std::vector<ProbeError>& errors) {
  constexpr int kMaxAttempts = 8;
  for (int i = 1;; ++i) {
    auto plans = PlanForImage(state, probes, errors);
    if (!errors.empty()) return;
    if (plans.empty()) return SyncWatch(state);
    Status installed = InstallIn(state, plans);
    if (installed.ok()) return;
    if (IsPlanOutdated(installed) && i < kMaxAttempts) continue;
    return errors.push_back({.probe = plans.front().probe, .error = std::move(installed).error()});
  }
}

std::vector<ProbeError> Installer::Create(ProbeGroup& group,
                                          const std::vector<std::shared_ptr<Probe>>& probes) {
  std::vector<ProbeError> errors;
  group.probes.insert(group.probes.end(), probes.begin(), probes.end());
  for (ProcessState* state : std::vector(group.processes)) {
    CreateIn(*state, probes, errors);
    if (!errors.empty()) break;
  }
  if (!errors.empty()) (void)Remove(group, probes);
  RequestOptimization(group);
  return errors;
}

// Where the copy would be is not known, but near; that is all its mechanism depends on.
std::vector<std::unique_ptr<Site>> Installer::Preview(
    ProbeGroup& group, const std::vector<std::shared_ptr<Probe>>& probes,
    std::vector<ProbeError>& errors) {
  constexpr uint64_t kNear = 1 << 20;
  std::vector<std::unique_ptr<Site>> sites;
  for (ProcessState* state : group.processes) {
    for (auto& plan : PlanAll(*state, probes, errors)) {
      RemoteAddr near = plan.address + kNear;
      auto site = std::make_unique<Site>(plan.address, std::move(plan.place), plan.instruction);
      auto copy = arch::BuildCopy(plan.instruction, plan.address.value, near.value);
      if (copy.ok()) site->set_copy(near, std::move(copy).value());
      site->AddProbe(plan.probe);
      std::string obstacle = optimizer_.ObstacleOf(*site);
      site->set_obstacle(!obstacle.empty() ? obstacle : std::string(kUndecided));
      sites.push_back(std::move(site));
    }
  }
  return sites;
}

Status Installer::SyncAll(ProbeGroup& group) {
  Status first_failure;
  for (ProcessState* state : std::vector(group.processes)) {
    const bool outdated_watch = watcher_.IsWatchOutdated(*state);
    if (ChangedSites(*state).empty() && !outdated_watch) continue;
    auto sync = [&](tracee::Stopped& stopped) -> Status {
      Status result;
      ForgetUnmapped(*state);
      LookAtGeneratedCode(*state, stopped.tid());
      tracee::CodeMemory code(stopped);
      // Again: until it stopped, the process may have executed another program or unmapped some.
      for (Site* site : ChangedSites(*state)) {
        Status synced = SyncSite(code, *site);
        if (!synced.ok() && result.ok()) result = std::move(synced);
      }
      if (outdated_watch) watcher_.SyncWatch(stopped, *state);
      return result;
    };
    auto outdated = [&] { return OutdatedSites(*state); };
    Status synced = WithBreakpoints(*state, outdated, sync);
    if (!synced.ok() && !IsGone(synced.error()) && first_failure.ok()) first_failure = synced;
  }
  RequestOptimization(group);
  return first_failure;
}

Status Installer::GiveUpReturns(ProbeGroup& group) {
  Status first_failure;
  for (ProcessState* state : std::vector(group.processes)) {
    if (!ReturnHandler::HasUnwanted(*state)) continue;
    auto give_up = [&](std::vector<tracee::Stopped*>& threads) -> Status {
      returns_.RestoreUnwanted(threads, *state);
      return {};
    };
    Status done = tracer_->WithAllStopped(state->process, kStopDeadline, give_up);
    if (!done.ok() && !IsGone(done.error()) && first_failure.ok()) first_failure = done;
  }
  return first_failure;
}

Status Installer::Remove(ProbeGroup& group, std::span<const std::shared_ptr<Probe>> probes) {
  std::unordered_set<const Probe*> removed;
  for (const auto& probe : probes) {
    probe->enabled = false;
    removed.insert(probe.get());
  }
  for (ProcessState* state : group.processes) {
    for (Site* site : state->sites.Sorted()) {
      for (const auto& probe : std::vector(site->probes())) {
        if (removed.contains(probe.get())) site->RemoveProbe(*probe);
      }
    }
  }
  std::erase_if(group.probes, [&](const auto& probe) { return removed.contains(probe.get()); });
  Status synced = SyncAll(group);
  Status given_up = GiveUpReturns(group);
  return synced.ok() ? given_up : synced;
}

Status Installer::SetEnabled(ProbeGroup& group, std::span<const std::shared_ptr<Probe>> probes,
                             bool enabled) {
  std::vector<std::shared_ptr<Probe>> changed;
  for (const auto& probe : probes) {
    if (std::exchange(probe->enabled, enabled) != enabled) changed.push_back(probe);
  }
  Status synced = SyncAll(group);
  if (synced.ok() && !enabled) synced = GiveUpReturns(group);
  if (synced.ok()) return {};
  for (const auto& probe : changed)
    probe->enabled = !enabled;
  (void)SyncAll(group);
  return synced;
}

}  // namespace probed::probe

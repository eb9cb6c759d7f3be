#include "engine/engine_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/probe/detacher.h"
#include "engine/probe/fork.h"
#include "engine/probe/generated_code.h"
#include "engine/probe/judge.h"
#include "engine/probe_request.h"
#include "engine/sys/proc.h"

namespace probed::engine {
namespace {

constexpr size_t kMostEndedTargets = 64;

// Whose what we write to tracefs is.
kernel::Owner Ourselves() {
  const auto stat = sys::ReadTaskStat(getpid());
  return {.pid = getpid(), .start_ticks = stat.ok() ? stat->start_ticks : 0};
}

// By option; what its line says is in its line.
uint32_t AskedMaxActive(const probe::Probe& probe) {
  const uint32_t number = probe.options.max_active;
  const bool is_asked = probe.definition->max_active == 0 && number != kDefaultMaxActive;
  return probe.hijacks() && is_asked ? number : 0;
}

uint32_t AskedStringLimit(const probe::Probe& probe) {
  const uint32_t limit = probe.options.limits.max_string;
  return limit == kDefaultStringLimit ? 0 : limit;
}

uint32_t CountListed(const probe::SiteTable& sites) {
  uint32_t count = 0;
  for (const probe::Site* site : sites.Sorted())
    count += probe::CountListed(*site);
  return count;
}

// A return probe is of its function, wherever its sites are.
std::string SymbolOf(const probe::Probe& probe, const probe::Site& site) {
  if (probe.return_instructions.empty() || !probe.file) return site.place().symbol;
  return probe::DescribePlace(*probe.file, FileOffset{probe.definition->offset});
}

}  // namespace

Error TargetNotFound(TargetId id) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "TARGET_NOT_FOUND",
               .message = fmt::format("process {} is not a target", id.pid),
               .hint = "attach to it first",
               .metadata = {{"pid", std::to_string(id.pid)}}};
}

Engine::State::State(const EngineOptions& engine_options,
                     std::shared_ptr<probe::PatchJournal> patches)
    : options(engine_options),
      controller(
          hub, files,
          {.enabled = options.optimization.enabled,
           .ring_bytes = options.optimization.ring_bytes,
           .planner = options.optimization.planner},
          std::move(patches), [this](const auto& state, auto change) { OnGone(state, change); },
          [this](auto& state) { Track(state); }),
      kernel(Ourselves(), controller.drainer()) {}

Target* Engine::State::FindTarget(TargetId id) {
  auto found = targets.find(id);
  return found == targets.end() ? nullptr : &found->second;
}

// A process may come back after a detach: its old life is over then.
void Engine::State::Track(probe::ProcessState& state) {
  if (std::erase(ended, state.id) > 0) ForgetProbes(state.id);
  targets[state.id] = Target{.info = {}, .state = &state, .group = state.group};
}

void Engine::State::OnGone(const probe::ProcessState& state, event::TargetChange change) {
  Target* target = FindTarget(state.id);
  // Of one that ends while it is being attached to again, only the former life was a target.
  if (target == nullptr || target->state != &state) return;
  target->info = Describe(*target);
  target->info.state =
      change == event::TargetChange::kDetached ? TargetState::kDetached : TargetState::kExited;
  target->state = nullptr;
  ended.push_back(state.id);
  if (ended.size() > kMostEndedTargets) ForgetOldest();
}

void Engine::State::ForgetOldest() {
  ForgetProbes(ended.front());
  targets.erase(ended.front());
  ended.pop_front();
}

// Probes of a root go with it, unless children of it are still followed.
void Engine::State::ForgetProbes(TargetId id) {
  auto group = targets[id].group;
  if (!group->processes.empty()) return;
  for (const auto& probe : group->probes) {
    probes.erase(probe->id);
  }
}

void Engine::State::DropOldDefinitions(TargetId fresh) {
  std::erase_if(definitions, [&](const auto& entry) {
    return entry.first == fresh || !targets.contains(entry.first);
  });
}

void Engine::State::CountDetours() {
  for (const auto& [id, target] : targets) {
    if (target.state != nullptr) target.state->CountDetours();
  }
}

// Whoever asks is told what stands there now: nobody tells us of changes.
void Engine::State::LookAtGeneratedCode() {
  for (const auto& [id, target] : targets) {
    if (target.state == nullptr || probe::GeneratedSites(*target.state).empty()) continue;
    auto space = probe::AddressSpace::Read(id.pid);
    if (space.ok()) probe::LookAtGeneratedCode(*target.state, std::nullopt, &*space);
  }
}

TargetInfo Engine::State::Describe(const Target& target) const {
  if (target.state == nullptr) return target.info;
  const auto& process = target.state->process;
  return TargetInfo{.id = target.state->id,
                    .root = target.group->root,
                    .executable = target.state->executable,
                    .comm = process.comm(process.pid()),
                    .state = TargetState::kRunning,
                    .threads = static_cast<uint32_t>(process.threads().size()),
                    .sites = CountListed(target.state->sites),
                    .attach_stop_ns = process.max_stop_ns(),
                    .stop_total_ns = process.total_stop_ns()};
}

Engine::State::SiteIndex Engine::State::IndexSites(const probe::ProbeGroup& group) {
  SiteIndex index;
  for (const auto* state : group.processes) {
    for (const probe::Site* site : state->sites.Sorted()) {
      for (const auto& probe : site->probes()) {
        const probe::Site*& shown = index[probe->id];
        if (shown == nullptr || (site->armed() && !shown->armed())) shown = site;
      }
    }
  }
  return index;
}

std::string Engine::State::HowItEnded(TargetId root) const {
  const auto found = targets.find(root);
  const bool detached =
      found != targets.end() && found->second.info.state == TargetState::kDetached;
  return detached ? "the process was detached" : "the process has ended";
}

ProbeInfo Engine::State::Describe(const probe::Probe& probe, const SiteIndex& sites) const {
  ProbeInfo info{.id = probe.id,
                 .target = {},
                 .definition = probe.definition->readback,
                 .path = probe.definition->path,
                 .offset = probe.definition->offset,
                 .symbol = probe.definition->symbol,
                 .schema = probe.schema,
                 .enabled = probe.enabled,
                 .filter = probe.selection.filter ? probe.selection.filter->text : "",
                 .sampling = probe.selection.sampling,
                 .at_ret = !probe.return_instructions.empty(),
                 .unseen_returns = probe.unseen_returns,
                 .dialect = probe.dialect,
                 .max_active = AskedMaxActive(probe),
                 .string_limit = AskedStringLimit(probe),
                 .force = probe.options.force,
                 .optimize = probe.options.optimize,
                 .state = probe.state(),
                 .mechanism = Mechanism::kNone,
                 .reason = probe.obstacle,
                 .counters = probe.counters};
  info.counters.lost += hub.LostOf(probe.id);
  const auto group = probe.group.lock();
  if (group) info.target = group->root;
  if (auto found = sites.find(probe.id); found != sites.end()) {
    const probe::Site& site = *found->second;
    info.mechanism = site.mechanism();
    info.reason = site.reason();
    info.undecided = site.undecided();
    if (site.probes().size() > 1 && info.mechanism == Mechanism::kBoosted && !info.undecided)
      info.reason += fmt::format("; so for all {} probes of this place", site.probes().size());
    if (!site.place().symbol.empty()) info.symbol = SymbolOf(probe, site);
  } else if (group && group->processes.empty()) {
    info.reason = HowItEnded(group->root) + (probe.was_armed ? "" : "; the file was not mapped");
  } else if (info.reason.empty()) {
    info.reason = "the file is not mapped";
  }
  if (!probe.remark.empty()) info.reason += "; " + probe.remark;
  return info;
}

}  // namespace probed::engine

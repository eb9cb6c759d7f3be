#include <fmt/format.h>

#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/kernel_lines.h"
#include "engine/probe_request.h"

namespace probed::engine {
namespace {

using ProbeList = std::vector<std::shared_ptr<probe::Probe>>;

Error ProbeNotFound() {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROBE_NOT_FOUND",
               .message = "a probe that was named is there no more: it has just been deleted",
               .hint = "try again; 'probectl list' shows what there is",
               .metadata = {}};
}

Error TooManyProbes(uint32_t limit) {
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "TOO_MANY_PROBES",
               .message = fmt::format("no more than {} probes", limit),
               .hint = "delete some, or raise the limit",
               .metadata = {}};
}

std::vector<ProbeId> IdsOf(const std::vector<ProbeInfo>& probes) {
  std::vector<ProbeId> ids;
  for (const ProbeInfo& probe : probes)
    ids.push_back(probe.id);
  return ids;
}

template <class Item>
void Append(std::vector<Item> more, std::vector<Item>& list) {
  list.insert(list.end(), std::make_move_iterator(more.begin()),
              std::make_move_iterator(more.end()));
}

// As in the kprobes list file, entry and return probes of one address have a line each.
void AppendSite(const probe::ProcessState& state, const probe::Site& site, lang::ProbeKind kind,
                std::vector<SiteInfo>& list) {
  SiteInfo info{.target = state.id,
                .address = site.address().value,
                .module = site.place().module,
                .offset = site.place().offset.value,
                .symbol = site.place().symbol,
                .kind = kind,
                .disabled = true,
                .gone = site.gone(),
                .mechanism = site.mechanism(),
                .reason = site.reason(),
                .probes = {},
                .hits = site.hits()};
  for (const auto& probe : site.probes()) {
    if (probe->definition->kind != kind) continue;
    info.probes.push_back(probe->id);
    if (probe->enabled) info.disabled = false;
  }
  if (!info.probes.empty()) list.push_back(std::move(info));
}

void AppendSites(const probe::ProcessState& state, std::vector<SiteInfo>& list) {
  for (const probe::Site* site : state.sites.Sorted()) {
    AppendSite(state, *site, lang::ProbeKind::kEntry, list);
    AppendSite(state, *site, lang::ProbeKind::kReturn, list);
  }
}

}  // namespace

// Those in the kernel are made first: they are easily taken back.
Result<CreateOutcome> Engine::CreateProbes(TargetId target, const std::vector<std::string>& lines,
                                           const CreateOptions& options) {
  std::lock_guard lock(state_->control);
  std::vector<ChangedCode> ours;
  if (options.in_kernel) ours = state_->ListChangedCode();
  PartedLines parted = PartLines(target, lines, options, state_->files, ours);
  CreateOutcome none;
  none.errors = std::move(parted.errors);
  if (!none.errors.empty()) return none;
  std::vector<ProbeInfo> in_kernel;
  const auto make_in_kernel = [&](std::vector<LineError>& errors) {
    in_kernel = state_->CreateInKernel(parted.kernel, options, errors);
  };
  if (target == kKernelTarget) make_in_kernel(none.errors);
  auto outcome = target == kKernelTarget
                     ? Result<CreateOutcome>(std::move(none))
                     : CreateInTarget(target, parted.user, options, make_in_kernel);
  if (!outcome.ok() || !outcome->errors.empty() || options.validate_only)
    state_->kernel.Delete(IdsOf(in_kernel));
  if (outcome.ok() && outcome->errors.empty()) Append(in_kernel, outcome->probes);
  return outcome;
}

Result<CreateOutcome> Engine::CreateInTarget(
    TargetId target, const std::vector<std::string>& lines, const CreateOptions& options,
    const std::function<void(std::vector<LineError>&)>& make_others) {
  std::vector<int> family;
  bool before_exec = false;
  PROBED_TRY(auto group, state_->Run([&]() -> Result<std::shared_ptr<probe::ProbeGroup>> {
    Target* found = state_->FindTarget(target);
    if (found == nullptr || found->state == nullptr) return TargetNotFound(target);
    if (state_->probes.size() + lines.size() > state_->options.max_probes) {
      return TooManyProbes(state_->options.max_probes);
    }
    for (const auto* state : found->group->processes)
      family.push_back(state->id.pid);
    before_exec = found->state->process.awaiting_exec();
    return found->group;
  }));
  PROBED_TRY(auto space, probe::AddressSpace::Read(target.pid));
  TargetNamespace names(target.pid, space, state_->files, std::move(family));
  if (before_exec) names.set_before_exec();
  auto& definitions =
      state_->definitions.try_emplace(group->root, lang::Dialect::kExtended).first->second;
  ProbeRequest request(definitions, space, names, options);
  CreateOutcome outcome;
  bool accepted = request.Judge(lines);
  if (accepted) make_others(request.errors());
  accepted = request.errors().empty();
  for (const auto& probe : request.probes()) {
    probe->id = ++state_->last_probe;
    probe->group = group;
  }
  if (accepted) {
    outcome.probes =
        options.validate_only ? state_->Preview(*group, request) : state_->Install(*group, request);
  }
  if (!request.errors().empty() || options.validate_only) request.Undo();
  // What looked like a missing file was a missing process.
  if (!request.errors().empty() && names.Gone()) return TargetNotFound(target);
  outcome.errors = std::move(request.errors());
  return outcome;
}

std::vector<ProbeInfo> Engine::State::Install(probe::ProbeGroup& group, ProbeRequest& request) {
  return Run([&] {
    std::vector<ProbeInfo> created;
    request.Refuse(controller.installer().Create(group, request.probes()));
    if (!request.errors().empty()) return created;
    auto sites = IndexSites(group);
    for (const auto& probe : request.probes()) {
      probes[probe->id] = probe;
      created.push_back(Describe(*probe, sites));
    }
    return created;
  });
}

std::vector<ProbeInfo> Engine::State::Preview(probe::ProbeGroup& group, ProbeRequest& request) {
  return Run([&] {
    std::vector<ProbeInfo> previewed;
    std::vector<probe::ProbeError> errors;
    auto planned = controller.installer().Preview(group, request.probes(), errors);
    request.Refuse(std::move(errors));
    if (!request.errors().empty()) return previewed;
    SiteIndex sites;
    for (const auto& site : planned)
      sites[site->probes().front()->id] = site.get();
    for (const auto& probe : request.probes()) {
      previewed.push_back(Describe(*probe, sites));
      if (probe->enabled && sites.contains(probe->id)) previewed.back().state = ProbeState::kArmed;
    }
    return previewed;
  });
}

std::vector<ProbeInfo> Engine::ListProbes(std::optional<TargetId> target) {
  std::vector<ProbeInfo> in_kernel;
  if (!target || *target == kKernelTarget) in_kernel = state_->ListInKernel();
  if (target == kKernelTarget) return in_kernel;
  return state_->RunCounted([&] {
    std::vector<ProbeInfo> list = std::move(in_kernel);
    std::unordered_set<const probe::ProbeGroup*> shown;
    for (const auto& [id, entry] : state_->targets) {
      if (target && *target != id && *target != entry.group->root) continue;
      if (!shown.insert(entry.group.get()).second) continue;
      auto sites = State::IndexSites(*entry.group);
      for (const auto& probe : entry.group->probes) {
        list.push_back(state_->Describe(*probe, sites));
      }
    }
    return list;
  });
}

Result<ProbeInfo> Engine::GetProbe(ProbeId id) {
  if (auto in_kernel = state_->kernel.Find(id)) return state_->Describe(*in_kernel);
  return state_->RunCounted([&]() -> Result<ProbeInfo> {
    auto found = state_->probes.find(id);
    if (found == state_->probes.end()) return ProbeNotFound();
    auto group = found->second->group.lock();
    auto sites = group ? State::IndexSites(*group) : State::SiteIndex{};
    return state_->Describe(*found->second, sites);
  });
}

// The probes of each group; every id must exist.
Result<Engine::State::ProbesByGroup> Engine::State::Collect(const std::vector<ProbeId>& ids) {
  ProbesByGroup by_group;
  std::unordered_set<ProbeId> seen;
  for (ProbeId id : ids) {
    auto found = probes.find(id);
    auto group = found == probes.end() ? nullptr : found->second->group.lock();
    if (!group) return ProbeNotFound();
    if (seen.insert(id).second) by_group[group].push_back(found->second);
  }
  return by_group;
}

Result<void> Engine::SetProbesEnabled(const std::vector<ProbeId>& ids, bool enabled) {
  std::lock_guard lock(state_->control);
  const auto parted = state_->Part(ids);
  if (enabled && !parted.kernel.empty()) {
    const auto ours = state_->ListChangedCode();
    for (ProbeId id : parted.kernel) {
      PROBED_TRY(const ProbeInfo probe, GetProbe(id));
      PROBED_RETURN_IF_ERROR(CheckUprobePlace(ours, probe.symbol));
    }
  }
  PROBED_RETURN_IF_ERROR(state_->SwitchInTargets(parted.user, enabled));
  Status in_kernel = state_->kernel.SetEnabled(parted.kernel, enabled);
  if (!in_kernel.ok()) (void)state_->SwitchInTargets(parted.user, !enabled);
  return in_kernel;
}

Status Engine::State::SwitchInTargets(const std::vector<ProbeId>& ids, bool enabled) {
  return Run([&]() -> Status {
    PROBED_TRY(auto by_group, Collect(ids));
    for (const auto& [group, list] : by_group) {
      PROBED_RETURN_IF_ERROR(controller.installer().SetEnabled(*group, list, enabled));
    }
    return {};
  });
}

Status Engine::State::Select(probe::Probe& probe, probe::Selection selection) {
  auto group = probe.group.lock();
  if (!group) return {};
  std::swap(probe.selection, selection);
  Status synced = controller.installer().SyncSelections(*group);
  if (synced.ok()) return {};
  std::swap(probe.selection, selection);
  (void)controller.installer().SyncSelections(*group);
  return synced;
}

std::optional<LineError> Engine::SetFilter(ProbeId id, const std::string& filter) {
  std::lock_guard lock(state_->control);
  if (state_->kernel.Has(id)) {
    auto refusal = state_->kernel.SetFilter(id, filter);
    if (!refusal) return std::nullopt;
    return ToLineError(*std::move(refusal));
  }
  auto probe = state_->Run([&] {
    auto found = state_->probes.find(id);
    return found == state_->probes.end() ? nullptr : found->second;
  });
  if (!probe)
    return LineError{.line = 0, .error = ProbeNotFound(), .verdict = {}, .in_filter = false};
  auto compiled = MakeFilter(*probe, filter);
  if (!compiled) return std::move(compiled).error();
  Status synced = state_->Run([&] {
    probe::Selection selection = probe->selection;
    selection.filter = *std::move(compiled);
    return state_->Select(*probe, std::move(selection));
  });
  if (synced.ok()) return std::nullopt;
  return LineError{
      .line = 0, .error = std::move(synced).error(), .verdict = {}, .in_filter = false};
}

Result<void> Engine::DeleteProbes(const std::vector<ProbeId>& ids) {
  std::lock_guard lock(state_->control);
  const auto parted = state_->Part(ids);
  ProbeList deleted;
  PROBED_RETURN_IF_ERROR(state_->Run([&]() -> Result<void> {
    PROBED_TRY(auto by_group, state_->Collect(parted.user));
    Status result;
    for (const auto& [group, probes] : by_group) {
      Status removed = state_->controller.installer().Remove(*group, probes);
      if (!removed.ok() && result.ok()) result = removed;
      deleted.insert(deleted.end(), probes.begin(), probes.end());
    }
    for (const auto& probe : deleted)
      state_->probes.erase(probe->id);
    return result;
  }));
  for (const auto& probe : deleted) {
    auto group = probe->group.lock();
    auto set = group ? state_->definitions.find(group->root) : state_->definitions.end();
    if (set != state_->definitions.end()) {
      set->second.Remove(probe->definition_id);
    }
  }
  state_->kernel.Delete(parted.kernel);
  return {};
}

// Where the engine itself needs a trap, too.
std::vector<ChangedCode> Engine::State::ListChangedCode() {
  return Run([&] {
    std::vector<ChangedCode> list;
    for (const auto& [id, entry] : targets) {
      if (entry.state == nullptr) continue;
      for (const probe::Site* site : entry.state->sites.Sorted())
        AppendChangedCode(id, *site, list);
    }
    return list;
  });
}

std::vector<SiteInfo> Engine::ListSites(std::optional<TargetId> target) {
  std::vector<SiteInfo> in_kernel;
  if (!target || *target == kKernelTarget) in_kernel = state_->ListKernelSites();
  return state_->RunCounted([&] {
    std::vector<SiteInfo> list = std::move(in_kernel);
    for (const auto& [id, entry] : state_->targets) {
      if (target && *target != id && *target != entry.group->root) continue;
      if (entry.state != nullptr) AppendSites(*entry.state, list);
    }
    return list;
  });
}

}  // namespace probed::engine

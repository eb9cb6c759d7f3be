#include <fmt/format.h>

#include <map>
#include <unordered_set>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/probe_request.h"

namespace probed::engine {
namespace {

using ProbeList = std::vector<std::shared_ptr<probe::Probe>>;

Error ProbeNotFound(ProbeId id) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROBE_NOT_FOUND",
               .message = fmt::format("there is no probe {}", id),
               .hint = "",
               .metadata = {{"probe", std::to_string(id)}}};
}

Error TooManyProbes(uint32_t limit) {
  return Error{.code = ErrorCode::kResourceExhausted,
               .reason = "TOO_MANY_PROBES",
               .message = fmt::format("no more than {} probes", limit),
               .hint = "delete some, or raise the limit",
               .metadata = {}};
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
                .gone = false,
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

Result<CreateOutcome> Engine::CreateProbes(TargetId target, const std::vector<std::string>& lines,
                                           const CreateOptions& options) {
  std::lock_guard lock(state_->control);
  PROBED_TRY(auto group, state_->Run([&]() -> Result<std::shared_ptr<probe::ProbeGroup>> {
    Target* found = state_->FindTarget(target);
    if (found == nullptr || found->state == nullptr) return TargetNotFound(target);
    if (state_->probes.size() + lines.size() > state_->options.max_probes) {
      return TooManyProbes(state_->options.max_probes);
    }
    return found->group;
  }));
  PROBED_TRY(auto space, probe::AddressSpace::Read(target.pid));
  TargetNamespace names(target.pid, space, state_->files);
  auto& definitions =
      state_->definitions.try_emplace(group->root, lang::Dialect::kExtended).first->second;
  ProbeRequest request(definitions, space, names, options);
  CreateOutcome outcome;
  bool accepted = request.Judge(lines);
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
  return state_->RunCounted([&] {
    std::vector<ProbeInfo> list;
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
  return state_->RunCounted([&]() -> Result<ProbeInfo> {
    auto found = state_->probes.find(id);
    if (found == state_->probes.end()) return ProbeNotFound(id);
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
    if (!group) return ProbeNotFound(id);
    if (seen.insert(id).second) by_group[group].push_back(found->second);
  }
  return by_group;
}

Result<void> Engine::SetProbesEnabled(const std::vector<ProbeId>& ids, bool enabled) {
  std::lock_guard lock(state_->control);
  return state_->Run([&]() -> Result<void> {
    PROBED_TRY(auto by_group, state_->Collect(ids));
    for (const auto& [group, probes] : by_group) {
      PROBED_RETURN_IF_ERROR(state_->controller.installer().SetEnabled(*group, probes, enabled));
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
  auto probe = state_->Run([&] {
    auto found = state_->probes.find(id);
    return found == state_->probes.end() ? nullptr : found->second;
  });
  if (!probe)
    return LineError{.line = 0, .error = ProbeNotFound(id), .verdict = {}, .in_filter = false};
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
  ProbeList deleted;
  PROBED_RETURN_IF_ERROR(state_->Run([&]() -> Result<void> {
    PROBED_TRY(auto by_group, state_->Collect(ids));
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
  return {};
}

std::vector<SiteInfo> Engine::ListSites(std::optional<TargetId> target) {
  return state_->RunCounted([&] {
    std::vector<SiteInfo> list;
    for (const auto& [id, entry] : state_->targets) {
      if (target && *target != id && *target != entry.group->root) continue;
      if (entry.state != nullptr) AppendSites(*entry.state, list);
    }
    return list;
  });
}

}  // namespace probed::engine

#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/kernel/sweep.h"
#include "engine/kernel_lines.h"
#include "engine/lang/print.h"

namespace probed::engine {
namespace {

Error NoSampling() {
  return Error{.code = ErrorCode::kUnimplemented,
               .reason = "NO_SAMPLING_IN_KERNEL",
               .message = "the kernel records every hit that passes the filter",
               .hint = "a filter instead of --sample and --rate",
               .metadata = {}};
}

Error NoRetInKernel() {
  return Error{.code = ErrorCode::kUnimplemented,
               .reason = "NO_AT_RET_IN_KERNEL",
               .message = "the kernel's return probes replace return addresses",
               .hint = "without --at-ret; or a probe of ours (no --mechanism kernel)",
               .metadata = {}};
}

// "r:...", "r10:...", "r FUNCTION", "p:... FUNCTION%return".
bool IsReturn(const kernel::ProbeRequest& request) {
  const std::string& line = request.text;
  const size_t behind = line.find_first_not_of("0123456789", 1);
  const bool is_named = behind == std::string::npos || line[behind] == ':' || line[behind] == ' ';
  return (line.starts_with('r') && is_named) || line.find("%return") != std::string::npos;
}

Error TriggersAreTheKernels() {
  return Error{.code = ErrorCode::kUnimplemented,
               .reason = "TRIGGERS_NEED_KERNEL",
               .message = "only probes in the kernel have triggers",
               .hint = "define it with --mechanism kernel",
               .metadata = {}};
}

ProbeCounters ToCounters(const kernel::Counters& counters) {
  return {.hits = counters.hits,
          .recorded = counters.recorded,
          .filtered = counters.filtered,
          .missed = counters.missed,
          .lost = counters.lost};
}

}  // namespace

ProbeInfo Engine::State::Describe(const kernel::ProbeView& probe) const {
  ProbeInfo info{.id = probe.id,
                 .target = kKernelTarget,
                 .definition = probe.definition,
                 .path = {},
                 .symbol = probe.place,
                 .schema = probe.schema,
                 .enabled = probe.enabled,
                 .filter = probe.filter,
                 .triggers = probe.triggers,
                 .state = probe.enabled ? ProbeState::kArmed : ProbeState::kDisabled,
                 .mechanism = Mechanism::kKernel,
                 .reason = probe.reason,
                 .counters = ToCounters(probe.counters)};
  info.counters.lost += hub.LostOf(probe.id);
  return info;
}

std::vector<ProbeInfo> Engine::State::ListInKernel() {
  std::vector<ProbeInfo> list;
  for (const kernel::ProbeView& probe : kernel.List())
    list.push_back(Describe(probe));
  return list;
}

std::vector<ProbeInfo> Engine::State::CreateInKernel(
    const std::vector<kernel::ProbeRequest>& requests, const CreateOptions& how,
    std::vector<LineError>& errors) {
  std::vector<ProbeInfo> created;
  if (requests.empty()) return created;
  const auto returns = std::ranges::find_if(requests, IsReturn);
  if (how.at_ret && returns != requests.end()) {
    errors.push_back({.line = returns->line, .error = NoRetInKernel(), .verdict = {}});
    return created;
  }
  if (how.sampling.is_needed()) {
    errors.push_back({.line = requests.front().line, .error = NoSampling(), .verdict = {}});
    return created;
  }
  auto outcome = kernel.Create(requests,
                               {.enable = how.enable && !how.validate_only,
                                .filter = how.filter,
                                .max_active = how.max_active},
                               [this] { return ++last_probe; });
  if (outcome.refusal) errors.push_back(ToLineError(*std::move(outcome.refusal)));
  for (const kernel::ProbeView& probe : outcome.probes)
    created.push_back(Describe(probe));
  return created;
}

Engine::State::PartedIds Engine::State::Part(const std::vector<ProbeId>& ids) {
  PartedIds parted;
  for (ProbeId id : ids)
    (kernel.Has(id) ? parted.kernel : parted.user).push_back(id);
  return parted;
}

std::vector<SiteInfo> Engine::State::ListKernelSites() {
  std::vector<SiteInfo> sites;
  for (const ProbeInfo& probe : ListInKernel()) {
    sites.push_back({.target = kKernelTarget,
                     .module = {},
                     .symbol = probe.symbol,
                     .kind = probe.schema->kind,
                     .disabled = !probe.enabled,
                     .mechanism = Mechanism::kKernel,
                     .reason = {},
                     .probes = {probe.id},
                     .hits = probe.counters.hits});
  }
  return sites;
}

std::optional<LineError> Engine::WriteTrigger(ProbeId id, const std::string& trigger) {
  std::lock_guard lock(state_->control);
  if (!state_->kernel.Has(id)) {
    auto probe = GetProbe(id);
    Error error = probe.ok() ? TriggersAreTheKernels() : std::move(probe).error();
    return LineError{.line = 0, .error = std::move(error), .verdict = {}};
  }
  auto refusal = state_->kernel.WriteTrigger(id, trigger);
  if (!refusal) return std::nullopt;
  return ToLineError(*std::move(refusal));
}

Result<std::string> Engine::ReadHistogram(ProbeId id) {
  std::lock_guard lock(state_->control);
  if (state_->kernel.Has(id)) return state_->kernel.ReadHistogram(id);
  PROBED_RETURN_IF_ERROR(GetProbe(id));
  return TriggersAreTheKernels();
}

Result<std::string> Engine::ReadFormat(ProbeId id) {
  std::lock_guard lock(state_->control);
  if (state_->kernel.Has(id)) return state_->kernel.ReadFormat(id);
  PROBED_TRY(const ProbeInfo probe, GetProbe(id));
  return lang::FormatFile(*probe.schema, static_cast<int>(id));
}

KernelSweepReport Engine::SweepKernel() {
  KernelSweepReport report;
  const auto tracefs = kernel::Tracefs::Find();
  if (!tracefs.ok()) return report;
  auto swept = kernel::SweepAbandoned(*tracefs);
  report.instances = swept.instances;
  report.definitions = swept.definitions;
  report.errors = std::move(swept.errors);
  return report;
}

}  // namespace probed::engine

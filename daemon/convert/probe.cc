#include "daemon/convert/probe.h"

#include <fmt/format.h>

#include "daemon/convert/names.h"
#include "daemon/convert/text.h"

namespace probed::daemon {
namespace {

constexpr uint32_t kMaxStringLimit = 1u << 20;

v1::Probe::State ToProto(engine::ProbeState state) {
  switch (state) {
    case engine::ProbeState::kPending:
      return v1::Probe::STATE_PENDING;
    case engine::ProbeState::kArmed:
      return v1::Probe::STATE_ARMED;
    case engine::ProbeState::kDisabled:
      return v1::Probe::STATE_DISABLED;
    case engine::ProbeState::kGone:
      return v1::Probe::STATE_GONE;
  }
  return v1::Probe::STATE_UNSPECIFIED;
}

v1::ProbeCounters ToProto(const engine::ProbeCounters& counters) {
  v1::ProbeCounters out;
  out.set_hits(counters.hits);
  out.set_recorded(counters.recorded);
  out.set_filtered(counters.filtered);
  out.set_sampled_out(counters.sampled_out);
  out.set_missed(counters.missed);
  out.set_unwound(counters.unwound);
  out.set_lost(counters.lost);
  return out;
}

template <class Fields>
void AddFields(const lang::EventSchema& schema, Fields* fields) {
  for (const lang::FieldSchema& field : schema.fields) {
    v1::Field* out = fields->Add();
    out->set_name(field.name);
    *out->mutable_type() = daemon::ToProto(field.type);
  }
}

}  // namespace

v1::Mechanism ToProto(engine::Mechanism mechanism) {
  switch (mechanism) {
    case engine::Mechanism::kNone:
      return v1::MECHANISM_UNSPECIFIED;
    case engine::Mechanism::kUnoptimized:
      return v1::MECHANISM_UNOPTIMIZED;
    case engine::Mechanism::kBoosted:
      return v1::MECHANISM_BOOSTED;
    case engine::Mechanism::kOptimized:
      return v1::MECHANISM_OPTIMIZED;
    case engine::Mechanism::kKernel:
      return v1::MECHANISM_KERNEL;
  }
  return v1::MECHANISM_UNSPECIFIED;
}

v1::ProbeKind ToProto(lang::ProbeKind kind) {
  switch (kind) {
    case lang::ProbeKind::kEntry:
      return v1::PROBE_KIND_ENTRY;
    case lang::ProbeKind::kReturn:
      return v1::PROBE_KIND_RETURN;
    case lang::ProbeKind::kTracepoint:
      return v1::PROBE_KIND_TRACEPOINT;
  }
  return v1::PROBE_KIND_UNSPECIFIED;
}

v1::FieldType ToProto(const lang::ArgType& type) {
  // The two enums list the same types in the same order; the API's starts at 1.
  static_assert(static_cast<int>(lang::BaseType::kU8) + 1 == v1::FieldType::BASE_U8);
  static_assert(static_cast<int>(lang::BaseType::kChar) + 1 == v1::FieldType::BASE_CHAR);
  static_assert(static_cast<int>(lang::BaseType::kBytes) + 1 == v1::FieldType::BASE_BYTES);
  v1::FieldType out;
  out.set_base(static_cast<v1::FieldType::Base>(static_cast<int>(type.base) + 1));
  out.set_is_array(type.is_array);
  out.set_count(type.count);
  out.set_bit_width(type.bit_width);
  out.set_bit_offset(type.bit_offset);
  return out;
}

v1::Probe ToProto(const engine::ProbeInfo& probe) {
  v1::Probe out;
  out.set_name(ProbeName({probe.target, probe.id}));
  out.set_id(probe.id);
  out.set_definition(Utf8(probe.definition));
  out.set_path(Utf8(probe.path));
  out.set_offset(probe.offset);
  out.set_symbol(Utf8(probe.symbol));
  out.set_enabled(probe.enabled);
  out.set_filter(Utf8(probe.filter));
  for (const std::string& trigger : probe.triggers)
    out.add_triggers(Utf8(trigger));
  if (probe.sampling.is_needed()) {
    out.mutable_sampling()->set_every(probe.sampling.every);
    out.mutable_sampling()->set_per_second(probe.sampling.per_second);
  }
  out.set_at_ret(probe.at_ret);
  out.set_unseen_returns(probe.unseen_returns);
  if (probe.dialect == lang::Dialect::kKernel) out.set_dialect(v1::DIALECT_KERNEL);
  out.set_max_active(probe.max_active);
  out.set_string_limit(probe.string_limit);
  out.set_force(probe.force);
  out.set_no_optimization(!probe.optimize);
  out.set_state(ToProto(probe.state));
  out.set_mechanism(ToProto(probe.mechanism));
  out.set_reason(Utf8(probe.reason));
  out.set_undecided(probe.undecided);
  *out.mutable_counters() = ToProto(probe.counters);
  if (probe.schema) {
    out.set_kind(ToProto(probe.schema->kind));
    out.set_group(probe.schema->group);
    out.set_event(probe.schema->event);
    AddFields(*probe.schema, out.mutable_fields());
  }
  return out;
}

v1::Site ToProto(const engine::SiteInfo& site, event::TargetId root) {
  v1::Site out;
  out.set_target(TargetName(site.target));
  out.set_address(site.address);
  out.set_module(Utf8(site.module));
  out.set_offset(site.offset);
  out.set_symbol(Utf8(site.symbol));
  out.set_kind(ToProto(site.kind));
  out.set_disabled(site.disabled);
  out.set_gone(site.gone);
  out.set_mechanism(ToProto(site.mechanism));
  out.set_reason(Utf8(site.reason));
  out.set_hits(site.hits);
  for (event::ProbeId probe : site.probes)
    out.add_probes(ProbeName({root, probe}));
  return out;
}

v1::EventSchema ToSchema(event::TargetId target, event::ProbeId probe,
                         const lang::EventSchema& schema) {
  v1::EventSchema out;
  out.set_id(probe);
  out.set_probe(ProbeName({target, probe}));
  out.set_group(schema.group);
  out.set_event(schema.event);
  out.set_kind(ToProto(schema.kind));
  AddFields(schema, out.mutable_fields());
  out.set_has_text(schema.has_text);
  return out;
}

Result<engine::CreateOptions> ToOptions(const v1::CreateProbesRequest& request) {
  if (request.mechanism() != v1::MECHANISM_UNSPECIFIED &&
      request.mechanism() != v1::MECHANISM_KERNEL)
    return Error{ErrorCode::kInvalidArgument,
                 "MECHANISM_NOT_SELECTABLE",
                 "only the kernel mechanism can be asked for",
                 "leave it out; no_optimization keeps breakpoints",
                 {}};
  if (request.string_limit() > kMaxStringLimit)
    return Error{
        ErrorCode::kInvalidArgument,
        "INVALID_STRING_LIMIT",
        fmt::format("string_limit {} is above {}", request.string_limit(), kMaxStringLimit),
        "0 for 4096, at most 1 MiB",
        {}};
  engine::CreateOptions options;
  options.dialect =
      request.dialect() == v1::DIALECT_KERNEL ? lang::Dialect::kKernel : lang::Dialect::kExtended;
  options.enable = !request.disabled();
  options.force = request.force();
  options.optimize = !request.no_optimization();
  options.validate_only = request.validate_only();
  options.require_armed = request.require_armed();
  options.max_active = request.max_active();
  options.string_limit =
      request.string_limit() ? request.string_limit() : engine::kDefaultStringLimit;
  options.filter = request.filter();
  options.in_kernel = request.mechanism() == v1::MECHANISM_KERNEL;
  options.at_ret = request.at_ret();
  options.sampling = {.every = std::max(request.sampling().every(), 1u),
                      .per_second = request.sampling().per_second()};
  return options;
}

Result<ProbeChanges> ToChanges(const v1::UpdateProbeRequest& request) {
  const v1::Probe& probe = request.probe();
  ProbeChanges changes;
  // Without a mask, what is filled in is meant (AIP 134), and false cannot be told from missing.
  if (request.update_mask().paths().empty()) {
    changes.enabled = probe.enabled();
    if (!probe.filter().empty()) changes.filter = probe.filter();
  }
  for (const std::string& path : request.update_mask().paths()) {
    const bool known = path == "enabled" || path == "filter" || path == "*";
    if (!known)
      return Error{ErrorCode::kInvalidArgument,
                   "FIELD_NOT_MUTABLE",
                   fmt::format("\"{}\" of a probe cannot be changed", path),
                   "update_mask \"enabled\" or \"filter\"; delete and create a probe to change "
                   "the rest",
                   {{"field", path}}};
    if (path != "filter") changes.enabled = probe.enabled();
    if (path != "enabled") changes.filter = probe.filter();
  }
  return changes;
}

}  // namespace probed::daemon

#include "daemon/convert/event.h"

#include <cstring>

#include "base/clock.h"
#include "daemon/convert/names.h"
#include "daemon/convert/text.h"
#include "engine/lang/payload.h"

namespace probed::daemon {
namespace {

struct ScalarTo {
  v1::Value* out;
  void operator()(uint64_t value) const { out->set_unsigned_value(value); }
  void operator()(int64_t value) const { out->set_signed_value(value); }
  void operator()(double value) const { out->set_double_value(value); }
  void operator()(const lang::StringValue& value) const {
    if (value.fault) {
      out->set_fault(true);
      return;
    }
    out->set_bytes_value(value.bytes);
    out->set_truncated(value.truncated);
  }
};

void AddValues(const event::HitView& hit, v1::Hit* out) {
  if (!*hit.schema) return;
  const lang::EventSchema& schema = **hit.schema;
  auto values = lang::DecodePayload(schema, hit.payload());
  if (!values.ok()) {
    for (size_t i = 0; i < schema.fields.size(); ++i)
      out->add_values()->set_fault(true);
    return;
  }
  out->mutable_values()->Reserve(static_cast<int>(values->size()));
  for (const lang::Value& value : *values)
    ToProto(value, out->add_values());
}

v1::TargetChange::Change ToProto(event::TargetChange change) {
  switch (change) {
    case event::TargetChange::kAttached:
      return v1::TargetChange::CHANGE_ATTACHED;
    case event::TargetChange::kForked:
      return v1::TargetChange::CHANGE_FORKED;
    case event::TargetChange::kExecuted:
      return v1::TargetChange::CHANGE_EXECUTED;
    case event::TargetChange::kExited:
      return v1::TargetChange::CHANGE_EXITED;
    case event::TargetChange::kDetached:
      return v1::TargetChange::CHANGE_DETACHED;
    case event::TargetChange::kSiteGone:
      return v1::TargetChange::CHANGE_SITE_GONE;
  }
  return v1::TargetChange::CHANGE_UNSPECIFIED;
}

// Notices carry no clocks of their own.
void StampNow(v1::Event* out) {
  const Timestamps now = ReadClocks();
  out->set_monotonic_ns(now.monotonic_ns);
  out->set_wall_ns(now.wall_ns);
}

}  // namespace

void ToProto(const lang::Value& value, v1::Value* out) {
  if (!value.is_array) {
    if (!value.elements.empty()) std::visit(ScalarTo{out}, value.elements.front());
    return;
  }
  v1::Array* array = out->mutable_array();
  for (const lang::Scalar& element : value.elements)
    std::visit(ScalarTo{array->add_elements()}, element);
}

void ToProto(const event::HitView& hit, v1::Event* out) {
  const lang::PackedHit& from = *hit.header;
  out->set_sequence(from.sequence);
  out->set_monotonic_ns(from.monotonic_ns);
  out->set_wall_ns(from.wall_ns);
  v1::Hit* to = out->mutable_hit();
  to->set_schema_id(from.probe);
  to->set_pid(from.pid);
  to->set_tid(from.tid);
  to->set_cpu(from.cpu);
  to->set_common_flags(from.flags);
  to->set_common_preempt_count(from.preempt_count);
  to->set_comm(from.comm, strnlen(from.comm, sizeof(from.comm)));
  to->set_ip(from.ip);
  to->set_function(from.function);
  AddValues(hit, to);
}

void ToProto(const event::LossNotice& loss, v1::Event* out) {
  StampNow(out);
  v1::Loss* to = out->mutable_loss();
  to->set_lost(loss.lost);
  to->set_first_sequence(loss.first_sequence);
  to->set_last_sequence(loss.last_sequence);
  to->set_first_monotonic_ns(loss.first_monotonic_ns);
  to->set_last_monotonic_ns(loss.last_monotonic_ns);
  to->set_target_changes(loss.notices);
}

void ToProto(const event::UnwoundNotice& unwound, v1::Event* out) {
  StampNow(out);
  v1::Unwound* to = out->mutable_unwound();
  to->set_schema_id(unwound.probe);
  to->set_calls(unwound.calls);
  to->set_pid(unwound.target.pid);
  to->set_tid(unwound.tid);
}

void ToProto(const event::TargetNotice& notice, v1::Event* out) {
  StampNow(out);
  v1::TargetChange* to = out->mutable_target_change();
  to->set_target(TargetName(notice.target));
  to->set_root(TargetName(notice.root));
  to->set_change(ToProto(notice.change));
  to->set_wait_status(notice.exit_status);
  to->set_detail(Utf8(notice.detail));
}

}  // namespace probed::daemon

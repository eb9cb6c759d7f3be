#include "engine/probe/recorder.h"

#include <algorithm>
#include <utility>

namespace probed::probe {

void Recorder::Record(Probe& probe, const HitPlace& place, ProcessState& state, pid_t tid,
                      StoppedContext& context) {
  event::HitRecord record;
  auto outcome =
      lang::Fetch(*probe.definition->program, probe.options.limits, context, record.payload);
  if (outcome == lang::FetchOutcome::kDropped) {
    ++probe.counters.recorded;
    ++probe.counters.lost;
    return;
  }
  record.probe = probe.id;
  record.target = state.id;
  record.tid = tid;
  std::string_view comm = context.comm();
  std::copy_n(comm.data(), std::min(comm.size(), record.comm.size() - 1), record.comm.data());
  record.cpu = context.cpu();
  record.monotonic_ns = place.time.monotonic_ns;
  record.wall_ns = place.time.wall_ns;
  record.kind = probe.definition->kind;
  record.ip = place.ip;
  record.function = place.function;
  record.schema = probe.schema;
  ++probe.counters.recorded;
  hub_.Publish(std::move(record));
}

}  // namespace probed::probe

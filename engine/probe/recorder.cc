#include "engine/probe/recorder.h"

#include <algorithm>
#include <utility>

namespace probed::probe {
namespace {

constexpr uint64_t kNsPerSecond = 1'000'000'000;

}  // namespace

bool Recorder::Passes(const Probe& probe, const HitPlace& place, pid_t tid, StoppedContext& context,
                      std::span<const std::byte> payload) {
  const auto& filter = probe.selection.filter;
  if (!filter) return true;
  const lang::FilterCode& code = filter->code;
  lang::FilterHit hit{.payload = payload,
                      .comm = {},
                      .ip = place.ip,
                      .function = place.function,
                      .tid = tid,
                      .cpu = 0,
                      .event_id = EventId(probe.id)};
  if (lang::Reads(code, lang::FilterOperand::kComm)) hit.comm = context.comm();
  if (lang::Reads(code, lang::FilterOperand::kCpu)) hit.cpu = context.cpu();
  return lang::Passes(code, hit);
}

void Recorder::Record(Probe& probe, const HitPlace& place, ProcessState& state, pid_t tid,
                      StoppedContext& context) {
  event::HitRecord record;
  auto outcome =
      lang::Fetch(*probe.definition->program, probe.options.limits, context, record.payload);
  if (outcome == lang::FetchOutcome::kDropped) {
    ++probe.counters.recorded;
    ++probe.counters.lost;
    drainer_.Lose(probe.id, state.id);
    return;
  }
  if (!Passes(probe, place, tid, context, record.payload)) {
    ++probe.counters.filtered;
    return;
  }
  const auto second = static_cast<uint32_t>(place.time.monotonic_ns / kNsPerSecond);
  if (!ring::Take(probe.selection.sampling, probe.sampling_state, second)) {
    ++probe.counters.sampled_out;
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
  drainer_.Publish(state.source, place.tsc, record);
}

}  // namespace probed::probe

#include "daemon/services/event_stream.h"

#include "daemon/convert/event.h"
#include "daemon/convert/probe.h"

namespace probed::daemon {
namespace {

constexpr size_t kMaxBatchEvents = 2048;
// Clients take messages of 4 MiB by default; one event is never split.
constexpr size_t kMaxBatchBytes = 1u << 20;
// How soon a client that went away is noticed.
constexpr std::chrono::milliseconds kPoll{20};
// Small batches are spaced, so that a steady trickle costs 200 wake-ups a second and not one a hit.
// The first event after a pause goes out at once.
constexpr size_t kSmallBatch = 256;
constexpr std::chrono::milliseconds kSpacing{5};

}  // namespace

bool EventStream::Greet() {
  for (const engine::ProbeInfo& probe : context_.engine.ListProbes(std::nullopt)) {
    if (!probe.schema || !filter_.WantsProbe(probe) || !told_.insert(probe.id).second) continue;
    *batch_.add_schemas() = ToSchema(probe.target, probe.id, *probe.schema);
  }
  return Flush();
}

void EventStream::Run(const grpc::ServerContext& call) {
  while (!call.IsCancelled() && !context_.stop.stop_requested()) {
    const std::vector<event::Item> items = subscription_.Next(kMaxBatchEvents, kPoll);
    if (items.empty() && subscription_.closed()) return;
    if (items.empty()) continue;
    if (!WriteBatches(items)) return;
    if (items.size() < kSmallBatch) Pause();
  }
}

bool EventStream::WriteBatches(const std::vector<event::Item>& items) {
  for (const event::Item& item : items) {
    if (const auto* hit = std::get_if<event::HitRecord>(&item)) AddSchema(*hit);
    v1::Event* event = batch_.add_events();
    ToProto(item, event);
    batch_bytes_ += event->ByteSizeLong();
    if (batch_bytes_ >= kMaxBatchBytes && !Flush()) return false;
  }
  return Flush();
}

void EventStream::Pause() {
  std::unique_lock lock(pause_mutex_);
  pause_.wait_for(lock, context_.stop.get_token(), kSpacing, [] { return false; });
}

bool EventStream::Flush() {
  const bool written = writer_.Write(batch_);
  batch_.Clear();
  batch_bytes_ = 0;
  return written;
}

void EventStream::AddSchema(const event::HitRecord& hit) {
  if (!hit.schema || !told_.insert(hit.probe).second) return;
  *batch_.add_schemas() = ToSchema(filter_.TargetOf(hit), hit.probe, *hit.schema);
}

}  // namespace probed::daemon

#include "daemon/services/event_stream.h"

#include "daemon/convert/event.h"
#include "daemon/convert/probe.h"

namespace probed::daemon {
namespace {

// Clients take messages of 4 MiB by default; one event is never split.
constexpr size_t kMaxBatchBytes = 1u << 20;
// How soon a client that went away is noticed.
constexpr std::chrono::milliseconds kPoll{20};
// Small messages are spaced, so that a steady trickle costs 200 wake-ups a second and not one a
// hit. The first event after a pause goes out at once.
constexpr size_t kSmallBytes = 32 << 10;
constexpr std::chrono::milliseconds kSpacing{5};

size_t SizeOf(const std::vector<event::Batch>& batches) {
  size_t bytes = 0;
  for (const event::Batch& batch : batches) {
    if (const auto* hits = std::get_if<event::PackedHits>(&batch)) bytes += hits->bytes();
  }
  return bytes;
}

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
    std::vector<event::Batch> batches = subscription_.NextBatches(kMaxBatchBytes, kPoll);
    if (batches.empty() && subscription_.closed()) return;
    if (batches.empty()) continue;
    const size_t bytes = SizeOf(batches);
    if (!Write(batches)) return;
    if (bytes < kSmallBytes) Pause();
  }
}

bool EventStream::Write(std::vector<event::Batch>& batches) {
  for (event::Batch& batch : batches) {
    if (auto* hits = std::get_if<event::PackedHits>(&batch)) {
      if (!Add(*hits)) return false;
    } else if (const auto* loss = std::get_if<event::LossNotice>(&batch)) {
      ToProto(*loss, batch_.add_events());
    } else if (const auto* unwound = std::get_if<event::UnwoundNotice>(&batch)) {
      AddSchema(unwound->probe, unwound->target, unwound->schema);
      ToProto(*unwound, batch_.add_events());
    } else {
      ToProto(std::get<event::TargetNotice>(batch), batch_.add_events());
    }
  }
  return Flush();
}

bool EventStream::Add(event::PackedHits& hits) {
  if (form_ == HitForm::kMessages) return AddMessages(hits);
  AddBlock(hits);
  return batch_bytes_ < kMaxBatchBytes || Flush();
}

bool EventStream::AddMessages(const event::PackedHits& hits) {
  bool open = true;
  hits.ForEach([&](const event::HitView& hit) {
    if (!open) return;
    AddSchema(hit.header->probe, hit.target(), *hit.schema);
    v1::Event* event = batch_.add_events();
    ToProto(hit, event);
    batch_bytes_ += event->ByteSizeLong();
    if (batch_bytes_ >= kMaxBatchBytes) open = Flush();
  });
  return open;
}

void EventStream::AddBlock(event::PackedHits& hits) {
  hits.ForEach([this](const event::HitView& hit) {
    AddSchema(hit.header->probe, hit.target(), *hit.schema);
  });
  v1::Event* event = batch_.add_events();
  const lang::PackedHit& first = *hits.front().header;
  event->set_sequence(first.sequence);
  event->set_monotonic_ns(first.monotonic_ns);
  event->set_wall_ns(first.wall_ns);
  batch_bytes_ += hits.bytes();
  event->mutable_hit_block()->set_records(hits.TakeBytes());
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

void EventStream::AddSchema(event::ProbeId probe, event::TargetId target,
                            const event::SchemaPtr& schema) {
  if (probe == last_told_) return;
  last_told_ = probe;
  if (!schema || !told_.insert(probe).second) return;
  *batch_.add_schemas() = ToSchema(filter_.TargetOf(probe, target), probe, *schema);
}

}  // namespace probed::daemon

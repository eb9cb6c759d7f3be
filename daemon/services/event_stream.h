#pragma once
// One WatchEvents call: takes items from the subscription, turns them into batches and writes them.
// Runs on the call's thread; a slow client blocks the write, and the bounded subscription drops.

#include <condition_variable>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <grpcpp/server_context.h>

#include "daemon/services/context.h"
#include "daemon/services/event_filter.h"
#include "probed/v1/events.grpc.pb.h"

namespace probed::daemon {

enum class HitForm : uint8_t { kMessages, kPacked };  // v1::Hit or v1::HitBlock

class EventStream {
 public:
  EventStream(ServiceContext& context, EventFilter& filter, event::Subscription& subscription,
              grpc::ServerWriter<v1::WatchEventsResponse>& writer, HitForm form)
      : context_(context),
        filter_(filter),
        subscription_(subscription),
        writer_(writer),
        form_(form) {}

  // All schemas of the moment and no event.
  bool Greet();
  // Until the client goes away, the daemon stops or the subscription is closed and empty.
  void Run(const grpc::ServerContext& call);

 private:
  bool Write(std::vector<event::Batch>& batches);
  bool Add(event::PackedHits& hits);
  bool AddMessages(const event::PackedHits& hits);
  void AddBlock(event::PackedHits& hits);
  bool Flush();
  void Pause();
  void AddSchema(event::ProbeId probe, event::TargetId target, const event::SchemaPtr& schema);

  ServiceContext& context_;
  EventFilter& filter_;
  event::Subscription& subscription_;
  grpc::ServerWriter<v1::WatchEventsResponse>& writer_;
  const HitForm form_;
  std::unordered_set<event::ProbeId> told_;  // schemas that the client has
  event::ProbeId last_told_ = 0;             // one of them; no probe is 0
  v1::WatchEventsResponse batch_;            // reused: its memory stays allocated
  size_t batch_bytes_ = 0;
  std::mutex pause_mutex_;
  std::condition_variable_any pause_;
};

}  // namespace probed::daemon

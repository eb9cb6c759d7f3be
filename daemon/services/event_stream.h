#pragma once
// One WatchEvents call: takes items from the subscription, turns them into batches and writes them.
// Runs on the call's thread; a slow client blocks the write, and the bounded subscription drops.

#include <condition_variable>
#include <mutex>
#include <unordered_set>

#include <grpcpp/server_context.h>

#include "daemon/services/context.h"
#include "daemon/services/event_filter.h"
#include "probed/v1/events.grpc.pb.h"

namespace probed::daemon {

class EventStream {
 public:
  EventStream(ServiceContext& context, EventFilter& filter, event::Subscription& subscription,
              grpc::ServerWriter<v1::WatchEventsResponse>& writer)
      : context_(context), filter_(filter), subscription_(subscription), writer_(writer) {}

  // All schemas of the moment and no event.
  bool Greet();
  // Until the client goes away, the daemon stops or the subscription is closed and empty.
  void Run(const grpc::ServerContext& call);

 private:
  bool WriteBatches(const std::vector<event::Item>& items);
  bool Flush();
  void Pause();
  void AddSchema(const event::HitRecord& hit);

  ServiceContext& context_;
  EventFilter& filter_;
  event::Subscription& subscription_;
  grpc::ServerWriter<v1::WatchEventsResponse>& writer_;
  std::unordered_set<event::ProbeId> told_;  // schemas that the client has
  v1::WatchEventsResponse batch_;            // reused: its memory stays allocated
  size_t batch_bytes_ = 0;
  std::mutex pause_mutex_;
  std::condition_variable_any pause_;
};

}  // namespace probed::daemon

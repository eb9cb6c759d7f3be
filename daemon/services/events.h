#pragma once

#include "daemon/services/context.h"
#include "daemon/services/event_filter.h"
#include "probed/v1/events.grpc.pb.h"

namespace probed::daemon {

class EventService final : public v1::EventService::Service {
 public:
  EventService(ServiceContext& context, const Caller& caller)
      : context_(context), caller_(caller) {}

  grpc::Status WatchEvents(grpc::ServerContext* call, const v1::WatchEventsRequest* request,
                           grpc::ServerWriter<v1::WatchEventsResponse>* writer) override;

 private:
  Result<EventFilter::Wanted> ToWanted(const v1::WatchEventsRequest& request);
  Result<event::SubscribeOptions> ToOptions(const v1::WatchEventsRequest& request);

  ServiceContext& context_;
  const Caller& caller_;
};

}  // namespace probed::daemon

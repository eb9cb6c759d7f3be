#include "daemon/services/events.h"

#include <optional>

#include "daemon/convert/names.h"
#include "daemon/convert/status.h"
#include "daemon/services/event_stream.h"

namespace probed::daemon {
namespace {

constexpr uint64_t kDefaultQueueBytes = 32u << 20;

// Runs a function on every way out of a scope.
template <class Function>
class OnExit {
 public:
  explicit OnExit(Function function) : function_(std::move(function)) {}
  OnExit(const OnExit&) = delete;
  OnExit& operator=(const OnExit&) = delete;
  ~OnExit() { function_(); }

 private:
  Function function_;
};

}  // namespace

grpc::Status EventService::WatchEvents(grpc::ServerContext* call,
                                       const v1::WatchEventsRequest* request,
                                       grpc::ServerWriter<v1::WatchEventsResponse>* writer) {
  const OnExit end_session([&] { EndSession(context_, caller_, request->end_session()); });
  auto wanted = ToWanted(*request);
  if (!wanted.ok()) return ToStatus(wanted.error());
  wanted->grows = request->follow_session();
  auto options = ToOptions(*request);
  if (!options.ok()) return ToStatus(options.error());

  ++context_.subscribers;
  const OnExit unsubscribed([&] { --context_.subscribers; });
  EventFilter filter(*std::move(wanted), [this](event::TargetId target) {
    return context_.authorizer.MaySee(caller_, target);
  });
  std::optional<SessionStreams::Registration> follows;
  if (request->follow_session())
    follows.emplace(context_.streams, SessionKey{caller_.uid, request->end_session()}, filter);
  options->wants_hit = [&filter](event::ProbeId probe, event::TargetId target) {
    return filter.WantsHit(probe, target);
  };
  options->wants_notice = [&filter](const event::TargetNotice& notice) {
    return filter.WantsNotice(notice);
  };
  const auto subscription = context_.engine.Subscribe(*std::move(options));
  for (const engine::TargetInfo& target : context_.engine.ListTargets())
    filter.Learn(target);

  EventStream stream(context_, filter, *subscription, *writer,
                     request->packed_hits() ? HitForm::kPacked : HitForm::kMessages);
  if (!request->greet() || stream.Greet()) stream.Run(*call);
  return grpc::Status::OK;
}

Result<EventFilter::Wanted> EventService::ToWanted(const v1::WatchEventsRequest& request) {
  EventFilter::Wanted wanted;
  for (const std::string& name : request.targets()) {
    PROBED_TRY(const event::TargetId target, ParseTargetName(name));
    PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, target));
    wanted.targets.insert(target);
  }
  for (const std::string& name : request.probes()) {
    PROBED_TRY(const ProbeRef probe, ParseProbeName(name));
    PROBED_RETURN_IF_ERROR(context_.authorizer.CheckTarget(caller_, probe.target));
    wanted.probes.insert(probe.probe);
  }
  return wanted;
}

Result<event::SubscribeOptions> EventService::ToOptions(const v1::WatchEventsRequest& request) {
  const uint64_t bytes = request.queue_bytes() ? request.queue_bytes() : kDefaultQueueBytes;
  const uint64_t limit = static_cast<uint64_t>(context_.limits.max_queue_bytes);
  if (bytes > limit)
    return Error{ErrorCode::kResourceExhausted,
                 "QUEUE_TOO_LARGE",
                 "queue_bytes is above the server's limit",
                 "ask for less, or raise limits.max_queue_bytes",
                 {{"limit", std::to_string(limit)}}};
  event::SubscribeOptions options;
  options.max_queued_bytes = bytes;
  options.policy = request.drop_policy() == v1::WatchEventsRequest::DROP_POLICY_NEWEST
                       ? event::DropPolicy::kDropNewest
                       : event::DropPolicy::kDropOldest;
  return options;
}

}  // namespace probed::daemon

#include "client/api.h"

#include <grpcpp/client_context.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <utility>

#include "client/channel.h"
#include "probed/v1/events.grpc.pb.h"
#include "probed/v1/kernel.grpc.pb.h"
#include "probed/v1/probes.grpc.pb.h"
#include "probed/v1/server.grpc.pb.h"
#include "probed/v1/symbols.grpc.pb.h"
#include "probed/v1/targets.grpc.pb.h"

namespace probed::client {
namespace {

constexpr int kPageSize = 10'000;  // the most that a server gives: each page costs it a look at all

}  // namespace

struct Api::State {
  State(const std::shared_ptr<grpc::Channel>& to, std::chrono::milliseconds within)
      : targets(v1::TargetService::NewStub(to)),
        probes(v1::ProbeService::NewStub(to)),
        events(v1::EventService::NewStub(to)),
        symbols(v1::SymbolService::NewStub(to)),
        server(v1::ServerService::NewStub(to)),
        kernel(v1::KernelService::NewStub(to)),
        deadline(within) {}

  std::unique_ptr<v1::TargetService::Stub> targets;
  std::unique_ptr<v1::ProbeService::Stub> probes;
  std::unique_ptr<v1::EventService::Stub> events;
  std::unique_ptr<v1::SymbolService::Stub> symbols;
  std::unique_ptr<v1::ServerService::Stub> server;
  std::unique_ptr<v1::KernelService::Stub> kernel;
  std::chrono::milliseconds deadline;

  // Calls `method` of `stub` and turns its status into a value.
  template <class Response, class Stub, class Service, class Request>
  Reply<Response> Call(Stub& stub,
                       grpc::Status (Service::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                       const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    Response response;
    grpc::Status status = (stub.*method)(&context, request, &response);
    if (!status.ok()) return tl::unexpected(FromStatus(status));
    return response;
  }

  // Follows page tokens until the end or `limit`. `items` names the response's repeated field.
  template <class Item, class Stub, class Service, class Request, class Response>
  Reply<std::vector<Item>> CallPaged(
      Stub& stub, grpc::Status (Service::*method)(grpc::ClientContext*, const Request&, Response*),
      Request request, google::protobuf::RepeatedPtrField<Item>* (Response::*items)(),
      size_t limit = SIZE_MAX) {
    std::vector<Item> all;
    do {
      request.set_page_size(static_cast<int>(std::min<size_t>(kPageSize, limit - all.size())));
      auto page = Call(stub, method, request);
      if (!page) return tl::unexpected(std::move(page).error());
      auto* found = ((*page).*items)();
      all.insert(all.end(), std::make_move_iterator(found->begin()),
                 std::make_move_iterator(found->end()));
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty() && all.size() < limit);
    return all;
  }
};

Api::Api(std::unique_ptr<State> state) : state_(std::move(state)) {}
Api::~Api() = default;

Result<std::unique_ptr<Api>> Api::Open(Endpoint& endpoint, std::chrono::milliseconds deadline) {
  PROBED_TRY(auto channel, OpenChannel(endpoint));
  return std::unique_ptr<Api>(new Api(std::make_unique<State>(std::move(channel), deadline)));
}

Reply<v1::Target> Api::AttachTarget(const v1::AttachTargetRequest& request) {
  return state_->Call(*state_->targets, &v1::TargetService::Stub::AttachTarget, request);
}

Reply<v1::DetachTargetResponse> Api::DetachTarget(const v1::DetachTargetRequest& request) {
  return state_->Call(*state_->targets, &v1::TargetService::Stub::DetachTarget, request);
}

Reply<v1::FindProcessesResponse> Api::FindProcesses(const v1::FindProcessesRequest& request) {
  return state_->Call(*state_->targets, &v1::TargetService::Stub::FindProcesses, request);
}

Reply<std::vector<v1::Target>> Api::ListTargets() {
  return state_->CallPaged<v1::Target>(*state_->targets, &v1::TargetService::Stub::ListTargets,
                                       v1::ListTargetsRequest(),
                                       &v1::ListTargetsResponse::mutable_targets);
}

Reply<v1::CreateProbesResponse> Api::CreateProbes(const v1::CreateProbesRequest& request) {
  return state_->Call(*state_->probes, &v1::ProbeService::Stub::CreateProbes, request);
}

Reply<std::vector<v1::Probe>> Api::ListProbes(const std::string& parent) {
  v1::ListProbesRequest request;
  request.set_parent(parent);
  return state_->CallPaged<v1::Probe>(*state_->probes, &v1::ProbeService::Stub::ListProbes, request,
                                      &v1::ListProbesResponse::mutable_probes);
}

Reply<std::vector<v1::Probe>> Api::SetProbesEnabled(const std::vector<std::string>& names,
                                                    bool enabled) {
  v1::SetProbesEnabledRequest request;
  request.mutable_names()->Assign(names.begin(), names.end());
  request.set_enabled(enabled);
  auto reply = state_->Call(*state_->probes, &v1::ProbeService::Stub::SetProbesEnabled, request);
  if (!reply) return tl::unexpected(std::move(reply).error());
  return std::vector<v1::Probe>(reply->probes().begin(), reply->probes().end());
}

Reply<v1::Probe> Api::SetFilter(const std::string& name, const std::string& filter) {
  v1::UpdateProbeRequest request;
  request.mutable_probe()->set_name(name);
  request.mutable_probe()->set_filter(filter);
  request.mutable_update_mask()->add_paths("filter");
  return state_->Call(*state_->probes, &v1::ProbeService::Stub::UpdateProbe, request);
}

Reply<v1::Probe> Api::WriteTrigger(const std::string& name, const std::string& trigger) {
  v1::WriteTriggerRequest request;
  request.set_name(name);
  request.set_trigger(trigger);
  return state_->Call(*state_->probes, &v1::ProbeService::Stub::WriteTrigger, request);
}

Reply<std::string> Api::GetFormat(const std::string& name) {
  v1::GetFormatRequest request;
  request.set_name(name);
  auto reply = state_->Call(*state_->probes, &v1::ProbeService::Stub::GetFormat, request);
  if (!reply) return tl::unexpected(std::move(reply).error());
  return reply->text();
}

Reply<std::string> Api::GetHistogram(const std::string& name) {
  v1::GetHistogramRequest request;
  request.set_name(name);
  auto reply = state_->Call(*state_->probes, &v1::ProbeService::Stub::GetHistogram, request);
  if (!reply) return tl::unexpected(std::move(reply).error());
  return reply->text();
}

Reply<void> Api::DeleteProbes(const std::vector<std::string>& names) {
  v1::DeleteProbesRequest request;
  request.mutable_names()->Assign(names.begin(), names.end());
  auto reply = state_->Call(*state_->probes, &v1::ProbeService::Stub::DeleteProbes, request);
  if (!reply) return tl::unexpected(std::move(reply).error());
  return {};
}

Reply<std::vector<v1::Site>> Api::ListSites(const std::string& parent) {
  v1::ListSitesRequest request;
  request.set_parent(parent);
  return state_->CallPaged<v1::Site>(*state_->probes, &v1::ProbeService::Stub::ListSites, request,
                                     &v1::ListSitesResponse::mutable_sites);
}

Reply<std::vector<v1::Module>> Api::ListModules(const std::string& parent) {
  v1::ListModulesRequest request;
  request.set_parent(parent);
  return state_->CallPaged<v1::Module>(*state_->symbols, &v1::SymbolService::Stub::ListModules,
                                       request, &v1::ListModulesResponse::mutable_modules);
}

Reply<std::vector<v1::Symbol>> Api::SearchSymbols(const v1::SearchSymbolsRequest& request,
                                                  size_t limit) {
  return state_->CallPaged<v1::Symbol>(*state_->symbols, &v1::SymbolService::Stub::SearchSymbols,
                                       request, &v1::SearchSymbolsResponse::mutable_symbols, limit);
}

Reply<v1::ExplainLocationResponse> Api::ExplainLocation(const v1::ExplainLocationRequest& request) {
  return state_->Call(*state_->symbols, &v1::SymbolService::Stub::ExplainLocation, request);
}

Reply<v1::ExplainFileResponse> Api::ExplainFile(const v1::ExplainFileRequest& request) {
  return state_->Call(*state_->symbols, &v1::SymbolService::Stub::ExplainFile, request);
}

Reply<v1::Kprobes> Api::GetKprobes() {
  return state_->Call(*state_->kernel, &v1::KernelService::Stub::GetKprobes,
                      v1::GetKprobesRequest());
}

Reply<v1::ServerInfo> Api::GetServerInfo() {
  return state_->Call(*state_->server, &v1::ServerService::Stub::GetServerInfo,
                      v1::GetServerInfoRequest());
}

Reply<v1::ServerInfo> Api::SetOptimization(bool enabled) {
  v1::SetOptimizationRequest request;
  request.set_enabled(enabled);
  return state_->Call(*state_->server, &v1::ServerService::Stub::SetOptimization, request);
}

namespace {

template <class Response>
class ServerStream final : public Stream<Response> {
 public:
  template <class Stub, class Service, class Request>
  ServerStream(Stub& stub,
               std::unique_ptr<grpc::ClientReader<Response>> (Service::*method)(
                   grpc::ClientContext*, const Request&),
               const Request& request)
      : reader_((stub.*method)(&context_, request)) {}

  bool Read(Response& response) override { return reader_->Read(&response); }

  void Cancel() override {
    cancelled_ = true;
    context_.TryCancel();
  }

  Reply<void> Finish() override {
    grpc::Status status = reader_->Finish();
    if (status.ok() || cancelled_) return {};
    return tl::unexpected(FromStatus(status));
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Response>> reader_;
  std::atomic<bool> cancelled_ = false;
};

}  // namespace

std::unique_ptr<EventStream> Api::WatchEvents(const v1::WatchEventsRequest& request) {
  return std::make_unique<ServerStream<v1::WatchEventsResponse>>(
      *state_->events, &v1::EventService::Stub::WatchEvents, request);
}

std::unique_ptr<ProcessStream> Api::WatchProcesses(const v1::FindProcessesRequest& request) {
  return std::make_unique<ServerStream<v1::FindProcessesResponse>>(
      *state_->targets, &v1::TargetService::Stub::WatchProcesses, request);
}

}  // namespace probed::client

#pragma once
// The API of a daemon as plain calls, without gRPC's headers. Thread-safe; every call is bounded by
// the deadline given to Open.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "client/endpoint.h"
#include "client/remote_error.h"
#include "probed/v1/events.pb.h"
#include "probed/v1/kernel.pb.h"
#include "probed/v1/probes.pb.h"
#include "probed/v1/server.pb.h"
#include "probed/v1/symbols.pb.h"
#include "probed/v1/targets.pb.h"

namespace probed::client {

// One call that is answered again and again. Read from one thread; Cancel from any.
template <class Response>
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // False when the stream has ended; Finish tells why.
  virtual bool Read(Response& response) = 0;
  virtual void Cancel() = 0;
  // Once, after Read returned false. A stream that we cancelled ended well.
  virtual Reply<void> Finish() = 0;
};
using EventStream = Stream<v1::WatchEventsResponse>;
using ProcessStream = Stream<v1::FindProcessesResponse>;

class Api {
 public:
  // Takes the endpoint's socket. Nothing is sent yet. The endpoint must outlive the Api when it
  // holds a private daemon.
  static Result<std::unique_ptr<Api>> Open(Endpoint& endpoint, std::chrono::milliseconds deadline);
  ~Api();

  Reply<v1::Target> AttachTarget(const v1::AttachTargetRequest& request);
  Reply<v1::DetachTargetResponse> DetachTarget(const v1::DetachTargetRequest& request);
  Reply<v1::FindProcessesResponse> FindProcesses(const v1::FindProcessesRequest& request);
  std::unique_ptr<ProcessStream> WatchProcesses(const v1::FindProcessesRequest& request);
  Reply<std::vector<v1::Target>> ListTargets();

  Reply<v1::CreateProbesResponse> CreateProbes(const v1::CreateProbesRequest& request);
  // `parent`: targets/PID-START, or targets/- for all.
  Reply<std::vector<v1::Probe>> ListProbes(const std::string& parent);
  Reply<std::vector<v1::Probe>> SetProbesEnabled(const std::vector<std::string>& names,
                                                 bool enabled);
  Reply<v1::Probe> SetFilter(const std::string& name, const std::string& filter);
  Reply<v1::Probe> WriteTrigger(const std::string& name, const std::string& trigger);
  Reply<std::string> GetFormat(const std::string& name);
  Reply<std::string> GetHistogram(const std::string& name);
  Reply<void> DeleteProbes(const std::vector<std::string>& names);
  Reply<std::vector<v1::Site>> ListSites(const std::string& parent);

  Reply<std::vector<v1::Module>> ListModules(const std::string& parent);
  // At most `limit` symbols.
  Reply<std::vector<v1::Symbol>> SearchSymbols(const v1::SearchSymbolsRequest& request,
                                               size_t limit);
  Reply<v1::ExplainLocationResponse> ExplainLocation(const v1::ExplainLocationRequest& request);
  Reply<v1::ExplainFileResponse> ExplainFile(const v1::ExplainFileRequest& request);

  Reply<v1::Kprobes> GetKprobes();

  Reply<v1::ServerInfo> GetServerInfo();
  Reply<v1::ServerInfo> SetOptimization(bool enabled);

  std::unique_ptr<EventStream> WatchEvents(const v1::WatchEventsRequest& request);

 private:
  struct State;
  explicit Api(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace probed::client

#pragma once
// build/probed on a socket of its own, and clients of it.

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "google/rpc/error_details.pb.h"
#include "probed/v1/events.grpc.pb.h"
#include "probed/v1/probes.grpc.pb.h"
#include "probed/v1/server.grpc.pb.h"
#include "probed/v1/symbols.grpc.pb.h"
#include "probed/v1/targets.grpc.pb.h"
#include "tests/daemon/child_process.h"

namespace probed::daemon {

// A sanitizer's allocator keeps what was freed: memory in use says nothing about the daemon then.
inline constexpr bool kHasSanitizer = !std::string_view(PROBED_SANITIZE).empty();
// Bounds a call; an instrumented daemon takes half a minute for ten thousand definitions.
inline constexpr std::chrono::seconds kCallDeadline{kHasSanitizer ? 300 : 30};

struct Client {
  explicit Client(std::shared_ptr<grpc::Channel> shared);

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::TargetService::Stub> targets;
  std::unique_ptr<v1::ProbeService::Stub> probes;
  std::unique_ptr<v1::EventService::Stub> events;
  std::unique_ptr<v1::SymbolService::Stub> symbols;
  std::unique_ptr<v1::ServerService::Stub> server;
};

class RunningDaemon {
 public:
  RunningDaemon();  // returns when sd_notify said READY=1
  ~RunningDaemon();

  bool ready() const { return ready_; }
  ChildProcess& process() { return *process_; }
  const std::string& socket() const { return socket_; }
  Client Connect() const;
  // Connects with the credentials of another user.
  std::optional<Client> ConnectAs(uid_t uid) const;

 private:
  std::string folder_;
  std::string socket_;
  bool ready_ = false;
  std::unique_ptr<ChildProcess> process_;
};

// `victim` once it said that it is ready.
std::unique_ptr<ChildProcess> StartVictim();
std::string VictimPath();

// A unary call with a deadline.
template <class Stub, class Method, class Request, class Response>
grpc::Status Call(Stub& stub, Method method, const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
  return (stub.*method)(&context, request, &response);
}

std::string ReasonOf(const grpc::Status& status);
template <class Detail>
std::optional<Detail> DetailOf(const grpc::Status& status);

// Attaches and defines; fails the test when it cannot.
v1::Target Attach(Client& client, pid_t pid, const std::string& session = "");
std::vector<v1::Probe> Create(Client& client, const v1::Target& target,
                              const std::vector<std::string>& lines,
                              const std::string& session = "");

// True as soon as `condition` holds; asks for up to 20 seconds.
bool Eventually(const std::function<bool()>& condition);

}  // namespace probed::daemon

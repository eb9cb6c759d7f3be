#pragma once
// The services as one caller sees them, behind one gRPC server. gRPC tells a handler nothing about
// the uid of a unix peer, so every identity has a server of its own and connections are handed to
// it.

#include <memory>

#include "daemon/services/context.h"

namespace grpc {
class Server;
}

namespace probed::daemon {

class ServiceSet {
 public:
  // Without an address: connections come by Adopt().
  static Result<std::unique_ptr<ServiceSet>> Start(ServiceContext& context, Caller caller);
  // A TCP port of our own with mutual TLS.
  static Result<std::unique_ptr<ServiceSet>> StartTls(ServiceContext& context,
                                                      const std::string& host_port,
                                                      const TlsConfig& tls);
  ~ServiceSet();  // cancels what runs and waits for it

  const Caller& caller() const { return caller_; }
  void Adopt(UniqueFd connection);
  void SetServing(bool serving);

 private:
  struct Services;
  ServiceSet(ServiceContext& context, Caller caller);

  Caller caller_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace probed::daemon

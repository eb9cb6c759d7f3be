#pragma once
// A gRPC channel over an endpoint.

#include <grpcpp/channel.h>

#include <memory>

#include "base/result.h"
#include "client/endpoint.h"

namespace probed::client {

// Takes the endpoint's socket. TLS files that cannot be read are errors; a wrong certificate shows
// at the first call.
Result<std::shared_ptr<grpc::Channel>> OpenChannel(Endpoint& endpoint);

}  // namespace probed::client

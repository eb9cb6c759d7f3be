#pragma once

#include "daemon/services/context.h"
#include "probed/v1/server.grpc.pb.h"

namespace probed::daemon {

class ServerService final : public v1::ServerService::Service {
 public:
  explicit ServerService(ServiceContext& context) : context_(context) {}

  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;

 private:
  ServiceContext& context_;
};

}  // namespace probed::daemon

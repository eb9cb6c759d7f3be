#pragma once

#include "daemon/services/context.h"
#include "probed/v1/server.grpc.pb.h"

namespace probed::daemon {

class ServerService final : public v1::ServerService::Service {
 public:
  ServerService(ServiceContext& context, const Caller& caller)
      : context_(context), caller_(caller) {}

  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;
  grpc::Status SetOptimization(grpc::ServerContext*, const v1::SetOptimizationRequest* request,
                               v1::ServerInfo* response) override;

 private:
  void Describe(v1::ServerInfo& info);

  ServiceContext& context_;
  const Caller& caller_;
};

}  // namespace probed::daemon

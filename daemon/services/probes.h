#pragma once

#include "daemon/convert/names.h"
#include "daemon/services/context.h"
#include "probed/v1/probes.grpc.pb.h"

namespace probed::daemon {

class ProbeService final : public v1::ProbeService::Service {
 public:
  ProbeService(ServiceContext& context, const Caller& caller)
      : context_(context), caller_(caller) {}

  grpc::Status CreateProbes(grpc::ServerContext*, const v1::CreateProbesRequest* request,
                            v1::CreateProbesResponse* response) override;
  grpc::Status GetProbe(grpc::ServerContext*, const v1::GetProbeRequest* request,
                        v1::Probe* response) override;
  grpc::Status ListProbes(grpc::ServerContext*, const v1::ListProbesRequest* request,
                          v1::ListProbesResponse* response) override;
  grpc::Status UpdateProbe(grpc::ServerContext*, const v1::UpdateProbeRequest* request,
                           v1::Probe* response) override;
  grpc::Status WriteTrigger(grpc::ServerContext*, const v1::WriteTriggerRequest* request,
                            v1::Probe* response) override;
  grpc::Status GetFormat(grpc::ServerContext*, const v1::GetFormatRequest* request,
                         v1::Format* response) override;
  grpc::Status GetHistogram(grpc::ServerContext*, const v1::GetHistogramRequest* request,
                            v1::Histogram* response) override;
  grpc::Status SetProbesEnabled(grpc::ServerContext*, const v1::SetProbesEnabledRequest* request,
                                v1::SetProbesEnabledResponse* response) override;
  grpc::Status DeleteProbe(grpc::ServerContext*, const v1::DeleteProbeRequest* request,
                           google::protobuf::Empty* response) override;
  grpc::Status DeleteProbes(grpc::ServerContext*, const v1::DeleteProbesRequest* request,
                            google::protobuf::Empty* response) override;
  grpc::Status ListSites(grpc::ServerContext*, const v1::ListSitesRequest* request,
                         v1::ListSitesResponse* response) override;

 private:
  using Names = google::protobuf::RepeatedPtrField<std::string>;

  Result<engine::ProbeInfo> Find(const ProbeRef& probe);
  // Every probe named, each checked for permission and existence.
  Result<std::vector<engine::ProbeInfo>> FindAll(const Names& names);
  Result<std::vector<engine::ProbeInfo>> SetEnabled(const Names& names, bool enabled);
  std::optional<engine::LineError> SetFilter(const engine::ProbeInfo& probe,
                                             const std::string& filter);
  Status Delete(const Names& names);
  void AuditProbes(std::string_view operation, const std::vector<engine::ProbeInfo>& probes,
                   const Status& status);
  // The target a list request is about, or nothing for all that the caller may see.
  Result<std::optional<event::TargetId>> ListParent(const std::string& parent);

  ServiceContext& context_;
  const Caller& caller_;
};

}  // namespace probed::daemon

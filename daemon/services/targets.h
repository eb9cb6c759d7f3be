#pragma once

#include <chrono>
#include <vector>

#include "daemon/process_selection.h"
#include "daemon/services/context.h"
#include "probed/v1/targets.grpc.pb.h"

namespace probed::daemon {

class TargetService final : public v1::TargetService::Service {
 public:
  TargetService(ServiceContext& context, const Caller& caller)
      : context_(context), caller_(caller) {}

  grpc::Status AttachTarget(grpc::ServerContext*, const v1::AttachTargetRequest* request,
                            v1::Target* response) override;
  grpc::Status LaunchTarget(grpc::ServerContext*, const v1::LaunchTargetRequest* request,
                            v1::Target* response) override;
  grpc::Status ResumeTarget(grpc::ServerContext*, const v1::ResumeTargetRequest* request,
                            v1::Target* response) override;
  grpc::Status DetachTarget(grpc::ServerContext*, const v1::DetachTargetRequest* request,
                            v1::DetachTargetResponse* response) override;
  grpc::Status FindProcesses(grpc::ServerContext* call, const v1::FindProcessesRequest* request,
                             v1::FindProcessesResponse* response) override;
  grpc::Status WatchProcesses(grpc::ServerContext* call, const v1::FindProcessesRequest* request,
                              grpc::ServerWriter<v1::FindProcessesResponse>* writer) override;
  grpc::Status GetTarget(grpc::ServerContext*, const v1::GetTargetRequest* request,
                         v1::Target* response) override;
  grpc::Status ListTargets(grpc::ServerContext*, const v1::ListTargetsRequest* request,
                           v1::ListTargetsResponse* response) override;

 private:
  Result<engine::TargetInfo> Attach(const v1::AttachTargetRequest& request);
  // The target that is there already, or a new one.
  Result<engine::TargetInfo> Join(event::TargetId target, const engine::AttachOptions& options);
  Status Verify(const engine::TargetInfo& attached, event::TargetId wanted);
  Result<engine::TargetInfo> Launch(const v1::LaunchTargetRequest& request);
  Result<engine::TargetInfo> Find(const std::string& name);
  Result<v1::DetachTargetResponse> Detach(event::TargetId target, const std::string& session);

  std::vector<event::TargetId> Select(const ProcessSelection& selection,
                                      const std::vector<pid_t>& candidates);
  std::vector<event::TargetId> WaitFor(const ProcessSelection& selection,
                                       std::chrono::milliseconds at_most,
                                       const grpc::ServerContext& call);
  bool IsOver(const grpc::ServerContext& call) const;

  ServiceContext& context_;
  const Caller& caller_;
};

}  // namespace probed::daemon

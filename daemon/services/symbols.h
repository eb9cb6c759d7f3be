#pragma once

#include "daemon/services/context.h"
#include "probed/v1/symbols.grpc.pb.h"

namespace probed::daemon {

class SymbolService final : public v1::SymbolService::Service {
 public:
  SymbolService(ServiceContext& context, const Caller& caller)
      : context_(context), caller_(caller) {}

  grpc::Status ListModules(grpc::ServerContext*, const v1::ListModulesRequest* request,
                           v1::ListModulesResponse* response) override;
  grpc::Status SearchSymbols(grpc::ServerContext*, const v1::SearchSymbolsRequest* request,
                             v1::SearchSymbolsResponse* response) override;
  grpc::Status ResolveSymbol(grpc::ServerContext*, const v1::ResolveSymbolRequest* request,
                             v1::ResolveSymbolResponse* response) override;
  grpc::Status ExplainLocation(grpc::ServerContext*, const v1::ExplainLocationRequest* request,
                               v1::ExplainLocationResponse* response) override;
  grpc::Status ExplainFile(grpc::ServerContext*, const v1::ExplainFileRequest* request,
                           v1::ExplainFileResponse* response) override;

 private:
  // The target named by `parent`, or none; `path` must be readable by the caller.
  Result<std::optional<event::TargetId>> Scope(const std::string& parent, const std::string& path);
  // The same for a place, of which `PID:0xADDRESS` is in the target of that process.
  Result<std::optional<event::TargetId>> ScopeOf(const std::string& parent,
                                                 const std::string& location);
  void AddJump(engine::Explanation& explanation);
  Result<engine::Explanation> Explain(const std::string& parent, const std::string& location);
  uint64_t AddressOf(event::TargetId target, const engine::Explanation& explanation);

  ServiceContext& context_;
  const Caller& caller_;
};

}  // namespace probed::daemon

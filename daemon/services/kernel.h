#pragma once
// The kernel's own facts, for admins: they tell what everybody probes and where the kernel is.

#include "daemon/access/caller.h"
#include "probed/v1/kernel.grpc.pb.h"
#include "probed/v1/symbols.pb.h"

namespace probed::daemon {

// The kernel as a parent of symbols and locations.
inline constexpr char kKernelName[] = "targets/kernel";

class KernelService final : public v1::KernelService::Service {
 public:
  explicit KernelService(const Caller& caller) : caller_(caller) {}

  grpc::Status GetKprobes(grpc::ServerContext*, const v1::GetKprobesRequest* request,
                          v1::Kprobes* response) override;

 private:
  const Caller& caller_;
};

// SymbolService's answers about targets/kernel.
grpc::Status SearchKernelSymbols(const Caller& caller, const v1::SearchSymbolsRequest& request,
                                 v1::SearchSymbolsResponse& response);
grpc::Status ExplainKernelLocation(const Caller& caller, const std::string& location,
                                   v1::ExplainLocationResponse& response);

}  // namespace probed::daemon

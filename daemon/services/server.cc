#include "daemon/services/server.h"

#include <unistd.h>

#include "daemon/access/policy.h"
#include "daemon/convert/duration.h"
#include "daemon/convert/probe.h"
#include "daemon/convert/status.h"
#include "daemon/version.h"

namespace probed::daemon {
namespace {

constexpr uint32_t kMaxStringBytes = 1u << 20;

v1::Limits LimitsOf(const engine::EngineOptions& engine, const Limits& limits) {
  v1::Limits out;
  out.set_max_targets(engine.max_targets);
  out.set_max_probes(engine.max_probes);
  out.set_max_message_bytes(static_cast<uint32_t>(limits.max_message_bytes));
  out.set_max_string_bytes(kMaxStringBytes);
  return out;
}

Error AdminsOnly() {
  return Error{ErrorCode::kPermissionDenied,
               "ADMIN_ONLY",
               "this changes the probes of everybody's targets",
               kAdminHint,
               {}};
}

}  // namespace

void ServerService::Describe(v1::ServerInfo& out) {
  const engine::EngineInfo info = context_.engine.Info();
  out.set_version(std::string(Version()));
  out.add_api_versions("probed.v1");
  for (engine::Mechanism mechanism : info.mechanisms)
    out.add_mechanisms(daemon::ToProto(mechanism));
  for (const std::string& privilege : info.privileges)
    out.add_privileges(privilege);
  *out.mutable_limits() = LimitsOf(info.limits, context_.limits);
  out.set_placement(info.placement);
  const auto uptime = std::chrono::steady_clock::now() - context_.started;
  *out.mutable_uptime() =
      DurationOfNanoseconds(static_cast<uint64_t>(std::chrono::nanoseconds(uptime).count()));
  out.set_events_published(info.events_published);
  out.set_targets(static_cast<uint32_t>(context_.engine.ListTargets().size()));
  out.set_probes(static_cast<uint32_t>(context_.engine.ListProbes(std::nullopt).size()));
  out.set_subscribers(context_.subscribers);
  out.set_pid(getpid());
  out.set_optimization(context_.engine.optimization());
}

grpc::Status ServerService::GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                                          v1::ServerInfo* response) {
  Describe(*response);
  return grpc::Status::OK;
}

grpc::Status ServerService::SetOptimization(grpc::ServerContext*,
                                            const v1::SetOptimizationRequest* request,
                                            v1::ServerInfo* response) {
  if (!caller_.admin) return ToStatus(AdminsOnly());
  const Status changed = context_.engine.SetOptimization(request->enabled());
  if (!changed.ok()) return ToStatus(changed.error());
  Describe(*response);
  return grpc::Status::OK;
}

}  // namespace probed::daemon

#include "daemon/services/server.h"

#include <unistd.h>

#include "daemon/convert/duration.h"
#include "daemon/convert/probe.h"
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

}  // namespace

grpc::Status ServerService::GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                                          v1::ServerInfo* response) {
  const engine::EngineInfo info = context_.engine.Info();
  response->set_version(std::string(Version()));
  response->add_api_versions("probed.v1");
  for (engine::Mechanism mechanism : info.mechanisms)
    response->add_mechanisms(daemon::ToProto(mechanism));
  for (const std::string& privilege : info.privileges)
    response->add_privileges(privilege);
  *response->mutable_limits() = LimitsOf(info.limits, context_.limits);
  response->set_placement(info.placement);
  const auto uptime = std::chrono::steady_clock::now() - context_.started;
  *response->mutable_uptime() =
      DurationOfNanoseconds(static_cast<uint64_t>(std::chrono::nanoseconds(uptime).count()));
  response->set_events_published(info.events_published);
  response->set_targets(static_cast<uint32_t>(context_.engine.ListTargets().size()));
  response->set_probes(static_cast<uint32_t>(context_.engine.ListProbes(std::nullopt).size()));
  response->set_subscribers(context_.subscribers);
  response->set_pid(getpid());
  return grpc::Status::OK;
}

}  // namespace probed::daemon

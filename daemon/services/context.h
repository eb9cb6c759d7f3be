#pragma once
// What all services share. Outlives them; every member is thread-safe.

#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>

#include "base/unique_fd.h"
#include "daemon/access/authorizer.h"
#include "daemon/boot_definitions.h"
#include "daemon/config.h"
#include "daemon/services/session_streams.h"
#include "daemon/sessions.h"
#include "engine/engine.h"

namespace grpc {
class ServerContext;
}

namespace probed::daemon {

struct ServiceContext {
  engine::Engine& engine;
  Authorizer& authorizer;
  Sessions& sessions;
  const Limits& limits;
  const BootDefinitions& boot;
  SessionStreams streams{};
  std::stop_source stop{};  // asks the streams to end
  std::atomic<uint32_t> subscribers = 0;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
};

// The target if probed is attached to it (or still knows it); TARGET_NOT_FOUND otherwise.
Result<engine::TargetInfo> FindTarget(ServiceContext& context, event::TargetId target);

// Deletes the session's probes and leaves its targets. An empty session: nothing.
void EndSession(ServiceContext& context, const Caller& caller, const std::string& session);
// The same if the client has given up the call or is gone: it never learned what it holds.
void EndSessionOfGone(const grpc::ServerContext& call, ServiceContext& context,
                      const Caller& caller, const std::string& session);

}  // namespace probed::daemon

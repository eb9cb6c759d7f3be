#pragma once
// A connected API for the verbs that talk to a daemon.

#include <memory>

#include "client/api.h"
#include "client/invocation.h"

namespace probed::client {

// What a verb needs to talk: the daemon (perhaps a private one) and its API, in the order in which
// they must go away.
struct Connection {
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<Api> api;
};

Result<Connection> Connect(const Invocation& invocation, Fallback fallback = Fallback::kNone);
Result<Connection> Connect(const Invocation& invocation, Endpoint endpoint);

// What a private daemon that failed said last; nothing when there is none.
void ReportDaemonLog(const Connection& connection, Talk& talk);

// Runs `body` with a connection to a daemon; a failed connection is reported.
int WithDaemon(const Invocation& invocation, Talk& talk, const std::function<ExitCode(Api&)>& body,
               Fallback fallback = Fallback::kNone);

}  // namespace probed::client

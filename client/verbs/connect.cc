#include "client/verbs/connect.h"

#include <utility>

namespace probed::client {

Result<Connection> Connect(const Invocation& invocation, Endpoint endpoint) {
  Connection connection;
  connection.endpoint = std::make_unique<Endpoint>(std::move(endpoint));
  std::chrono::duration<double> deadline(invocation.timeout_seconds);
  PROBED_TRY(connection.api,
             Api::Open(*connection.endpoint,
                       std::chrono::duration_cast<std::chrono::milliseconds>(deadline)));
  return connection;
}

Result<Connection> Connect(const Invocation& invocation, Fallback fallback) {
  PROBED_TRY(Endpoint endpoint, FindEndpoint(invocation.endpoint, fallback));
  return Connect(invocation, std::move(endpoint));
}

void ReportDaemonLog(const Connection& connection, Talk& talk) {
  if (!connection.endpoint->daemon) return;
  std::string log = connection.endpoint->daemon->Log();
  if (!log.empty()) talk.Warn("the private daemon said:\n" + log);
}

int WithDaemon(const Invocation& invocation, Talk& talk, const std::function<ExitCode(Api&)>& body,
               Fallback fallback) {
  auto connection = Connect(invocation, fallback);
  if (!connection.ok()) return static_cast<int>(talk.Fail(connection.error()));
  return static_cast<int>(body(*connection->api));
}

}  // namespace probed::client

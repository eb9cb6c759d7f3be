#pragma once
// A connected API for the verbs that talk to a daemon.

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client/api.h"
#include "client/invocation.h"
#include "client/verbs/options.h"

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

// A verb that is calls to a daemon: `body` of options that are made here, to be filled by the
// parse.
template <class Options>
std::pair<CLI::App*, std::shared_ptr<Options>> AddDaemonVerb(
    CLI::App& app, Invocation& invocation, const std::string& name, const std::string& description,
    ExitCode (*body)(const Options&, Api&, Talk&), Fallback fallback = Fallback::kNone) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = AddVerb(app, invocation, name, description, [=, &invocation](Talk& talk) {
    return WithDaemon(
        invocation, talk, [&](Api& api) { return body(*options, api, talk); }, fallback);
  });
  return {verb, options};
}

}  // namespace probed::client

// probectl attach: probe running processes until they end or the user has seen enough.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/trace_targets.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

// Without definitions: the targets stay attached for later `define`.
ExitCode Hold(const TraceOptions& options, const v1::FindProcessesRequest& selection, Api& api,
              Talk& talk) {
  auto pids =
      FindPids(options.processes, options.stream.duration_seconds, selection, api, nullptr, talk);
  if (!pids) return talk.Fail(pids.error());
  return AttachAll(options, *pids, talk, [&](const v1::AttachTargetRequest& request) {
    auto target = api.AttachTarget(request);
    if (target) fmt::print("{}\n", target->name());
    return target;
  });
}

bool IsForWantOfADaemon(const Error& error) {
  return error.reason == "NO_DAEMON" || error.reason == "PRIVATE_DAEMON_IS_NEW";
}

// A daemon that ends with us cannot hold a target.
Result<Endpoint> FindEndpoint(const EndpointOptions& options, bool tracing) {
  auto endpoint =
      client::FindEndpoint(options, tracing ? Fallback::kPrivateDaemon : Fallback::kNone);
  if (endpoint.ok() || tracing || !IsForWantOfADaemon(endpoint.error())) return endpoint;
  Error error = std::move(endpoint).error();
  error.hint =
      "definitions (-e), for which a private daemon is enough; one that holds a target beyond this "
      "command must be started: probed";
  return error;
}

Error NothingToJoin() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NOTHING_TO_JOIN",
          .message = "--join is for a trace that runs: it needs definitions",
          .hint = "-e 'p:my/open libc.so.6:open64'",
          .metadata = {}};
}

Result<ExitCode> Attach(const TraceOptions& options, const Invocation& invocation, Talk& talk) {
  bool tracing = options.has_definitions();
  PROBED_TRY(auto selection, SelectionOf(options.processes));
  if (options.processes.join && !tracing) return NothingToJoin();
  PROBED_TRY(auto lines, options.definitions.Lines());
  if (tracing && lines.empty()) return NothingDefined();
  PROBED_TRY(Endpoint endpoint, FindEndpoint(invocation.endpoint, tracing));
  std::optional<Signals> signals;
  if (tracing) signals.emplace();
  PROBED_TRY(Connection connection, Connect(invocation, std::move(endpoint)));
  if (!tracing) return Hold(options, selection, *connection.api, talk);
  ExitCode code = TraceTargets(options, selection, lines, *connection.api, *signals, talk);
  if (code == ExitCode::kConnect) ReportDaemonLog(connection, talk);
  return code;
}

}  // namespace

void AddAttach(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, "attach",
              "Probe running processes until they end, Ctrl-C, --duration or --count.\n"
              "Without definitions the targets stay attached, for 'define'.\n"
              "Example: probectl attach --pid 1234 -e 'p:my/open libc.so.6:open64 "
              "path=+0(%di):string'",
              [options, &invocation](Talk& talk) {
                auto code = Attach(*options, invocation, talk);
                return static_cast<int>(code.ok() ? *code : talk.Fail(code.error()));
              });
  AddProcessOptions(*verb, options->processes);
  verb->add_flag("--follow", options->follow, "Follow forked children; not with --join or --maps")
      ->excludes("--join")
      ->excludes("--maps");
  AddDefinitionOptions(*verb, options->definitions);
  AddRequireArmedOption(*verb, options->definitions);
  AddStreamOptions(*verb, options->stream);
}

}  // namespace probed::client

// probectl trace: the kernel's events, without a process to attach to.

#include <memory>
#include <optional>

#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/trace_targets.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

Error NothingDefined() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NOTHING_DEFINED",
          .message = "trace needs something to trace",
          .hint = "-e sched:sched_switch, or -e 'p:my/open do_sys_openat2'",
          .metadata = {}};
}

Result<ExitCode> Trace(const TraceOptions& options, const Invocation& invocation, Talk& talk) {
  PROBED_TRY(auto lines, options.definitions.Lines());
  if (lines.empty()) return NothingDefined();
  PROBED_TRY(Endpoint endpoint, FindEndpoint(invocation.endpoint, Fallback::kPrivateDaemon));
  Signals signals;
  PROBED_TRY(Connection connection, Connect(invocation, std::move(endpoint)));
  ExitCode code = TraceTargets(options, std::nullopt, lines, *connection.api, signals, talk);
  if (code == ExitCode::kConnect) ReportDaemonLog(connection, talk);
  return code;
}

}  // namespace

void AddTrace(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<TraceOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, "trace",
              "Trace the kernel: its events by name, and definitions of kernel code.\n"
              "Example: probectl trace -e sched:sched_switch -e 'p:my/open do_sys_openat2'",
              [options, &invocation](Talk& talk) {
                auto code = Trace(*options, invocation, talk);
                return static_cast<int>(code.ok() ? *code : talk.Fail(code.error()));
              });
  AddDefinitionOptions(*verb, options->definitions);
  AddStreamOptions(*verb, options->stream);
}

}  // namespace probed::client

// probectl attach: probe running processes until they end or the user has seen enough.

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "client/stop_watch.h"
#include "client/tracing_session.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/process_options.h"
#include "client/verbs/stream_output.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct AttachOptions {
  ProcessOptions processes;
  bool follow = false;
  DefinitionOptions definitions;
  StreamOptions stream;

  bool has_definitions() const {
    return !definitions.expressions.empty() || !definitions.files.empty();
  }
};

v1::AttachTargetRequest RequestFor(int pid, const AttachOptions& options) {
  v1::AttachTargetRequest request;
  request.set_pid(pid);
  request.set_follow_children(options.follow);
  return request;
}

// Attaches to every pid. kOk: to all; kPartial: to some; else the exit code of the first failure.
template <class Attach>
ExitCode AttachAll(const AttachOptions& options, const std::vector<int>& pids, Talk& talk,
                   Attach attach) {
  ExitCode worst = ExitCode::kOk;
  size_t attached = 0;
  for (int pid : pids) {
    auto target = attach(RequestFor(pid, options));
    if (target) {
      ++attached;
    } else {
      ExitCode code = talk.Fail(target.error());
      if (worst == ExitCode::kOk) worst = code;
    }
  }
  return worst != ExitCode::kOk && attached != 0 ? ExitCode::kPartial : worst;
}

bool NothingAttached(ExitCode code) {
  return code != ExitCode::kOk && code != ExitCode::kPartial;
}

// Without definitions: the targets stay attached for later `define`.
ExitCode Hold(const AttachOptions& options, const v1::FindProcessesRequest& selection, Api& api,
              Talk& talk) {
  auto pids = FindPids(options.processes, selection, api, talk);
  if (!pids) return talk.Fail(pids.error());
  return AttachAll(options, *pids, talk, [&](const v1::AttachTargetRequest& request) {
    auto target = api.AttachTarget(request);
    if (target) fmt::print("{}\n", target->name());
    return target;
  });
}

Reply<void> Begin(const AttachOptions& options, const std::vector<std::string>& lines,
                  TracingSession& session, StreamOutput& output) {
  // Created disabled: what happens before we listen would be lost.
  v1::CreateProbesRequest request = options.definitions.Request(lines);
  request.set_disabled(true);
  if (auto defined = session.Define(std::move(request)); !defined) return defined;
  auto streaming = session.Stream(options.stream.count, *output.writer, output.output);
  if (!streaming) return streaming;
  return session.Enable();
}

std::string DescribeTargets(const TracingSession& session) {
  std::string text;
  for (const auto& target : session.targets()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", target.pid(), target.comm());
  }
  return text;
}

std::string DescribeEnd(StopReason reason, const TracingSession& session) {
  std::string targets = DescribeTargets(session);
  return reason == StopReason::kTargetsEnded ? targets + " ended" : "detached from " + targets;
}

// Attaches, defines and subscribes. kOk or kPartial: the trace runs.
ExitCode SetUp(const AttachOptions& options, const std::vector<int>& pids,
               const std::vector<std::string>& lines, TracingSession& session, StreamOutput& output,
               Talk& talk) {
  ExitCode attached = AttachAll(options, pids, talk, [&](const v1::AttachTargetRequest& request) {
    return session.Attach(request);
  });
  if (NothingAttached(attached)) return attached;
  auto begun = Begin(options, lines, session, output);
  if (begun) return attached;
  ExitCode code = talk.Fail(begun.error());
  static_cast<void>(session.Finish());
  return code;
}

ExitCode Trace(const AttachOptions& options, const v1::FindProcessesRequest& selection,
               const std::vector<std::string>& lines, Api& api, Signals& signals, Talk& talk) {
  auto output = OpenStreamOutput(options.stream);
  if (!output.ok()) return talk.Fail(output.error());
  TracingSession session(api, talk);
  std::optional<EndOnInterrupt> nothing_yet(std::in_place, signals);
  auto pids = FindPids(options.processes, selection, api, talk);
  if (!pids) return talk.Fail(pids.error());
  ExitCode attached = SetUp(options, *pids, lines, session, *output, talk);
  nothing_yet.reset();
  if (NothingAttached(attached)) return attached;
  talk.Note(fmt::format("attached to {}; Ctrl-C detaches", DescribeTargets(session)));
  StopOptions stop;
  stop.duration_seconds = options.stream.duration_seconds;
  StopReason reason = WaitForStop(session.pump(), signals, talk, stop);
  signals.LetInterruptsEndUs();
  auto end = session.Finish();
  if (!end) return talk.Fail(end.error());
  talk.Note(DescribeEnd(reason, session));
  if (!CheckWritten(output->output, talk)) return ExitCode::kFailure;
  ExitCode judged = ExitCodeOf(reason, talk);
  return judged == ExitCode::kOk ? attached : judged;
}

// A daemon that ends with us cannot hold a target.
Result<Endpoint> FindEndpoint(const EndpointOptions& options, bool tracing) {
  auto endpoint =
      client::FindEndpoint(options, tracing ? Fallback::kPrivateDaemon : Fallback::kNone);
  if (endpoint.ok() || tracing || endpoint.error().reason != "NO_DAEMON") return endpoint;
  Error error = std::move(endpoint).error();
  error.hint =
      "definitions (-e), for which a private daemon is enough; one that holds a target beyond this "
      "command must be started: probed";
  return error;
}

Result<ExitCode> Attach(const AttachOptions& options, const Invocation& invocation, Talk& talk) {
  bool tracing = options.has_definitions();
  PROBED_TRY(auto selection, SelectionOf(options.processes));
  PROBED_TRY(auto lines, options.definitions.Lines());
  PROBED_TRY(Endpoint endpoint, FindEndpoint(invocation.endpoint, tracing));
  std::optional<Signals> signals;
  if (tracing) signals.emplace();
  PROBED_TRY(Connection connection, Connect(invocation, std::move(endpoint)));
  if (!tracing) return Hold(options, selection, *connection.api, talk);
  ExitCode code = Trace(options, selection, lines, *connection.api, *signals, talk);
  if (code == ExitCode::kConnect) ReportDaemonLog(connection, talk);
  return code;
}

}  // namespace

void AddAttach(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<AttachOptions>();
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
  verb->add_flag("--follow", options->follow, "Follow forked children");
  AddDefinitionOptions(*verb, options->definitions);
  AddRequireArmedOption(*verb, options->definitions);
  AddStreamOptions(*verb, options->stream);
}

}  // namespace probed::client

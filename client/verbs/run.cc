// probectl run: start a command with probes armed before its first instruction.

#include <memory>
#include <optional>
#include <utility>

#include "client/command.h"
#include "client/stop_watch.h"
#include "client/tracing_session.h"
#include "client/typed_places.h"
#include "client/verbs/connect.h"
#include "client/verbs/options.h"
#include "client/verbs/stream_output.h"
#include "client/verbs/verbs.h"

namespace probed::client {
namespace {

struct RunOptions {
  DefinitionOptions definitions;
  StreamOptions stream;
  bool no_follow = false;
};

Error NoCommand() {
  return {.code = ErrorCode::kInvalidArgument,
          .reason = "NO_COMMAND",
          .message = "there is no command to run",
          .hint = "probectl run [OPTIONS] -- COMMAND [ARGUMENTS]",
          .metadata = {}};
}

ExitCode ExecExitCode(const Error& error) {
  return error.reason == "COMMAND_NOT_FOUND" ? ExitCode::kCommandNotFound
                                             : ExitCode::kCannotExecute;
}

// What is looked for in PATH is not known before the exec.
std::string PathOf(const std::string& word) {
  return word.find('/') == std::string::npos ? "" : AbsolutePath(word);
}

// One run: what happens between the fork of the command and its end.
class Runner {
 public:
  Runner(const RunOptions& options, std::string program, Command& command, Api& api,
         Signals& signals, Talk& talk)
      : options_(options),
        program_(std::move(program)),
        command_(command),
        signals_(signals),
        talk_(talk),
        session_(api, talk) {}

  int Run(const std::vector<std::string>& lines, StreamOutput& output) {
    std::optional<EndOnInterrupt> nothing_yet(std::in_place, signals_);
    auto ready = Prepare(lines, output);
    nothing_yet.reset();
    if (!ready) return Abandon(ready.error());
    if (auto released = command_.Release(); !released.ok()) {
      talk_.Fail(released.error());
      session_.Abandon();
      return static_cast<int>(ExecExitCode(released.error()));
    }
    return Watch(output);
  }

  bool connection_lost() const { return connection_lost_; }

 private:
  Reply<void> Prepare(const std::vector<std::string>& lines, StreamOutput& output) {
    v1::AttachTargetRequest attach;
    attach.set_pid(command_.pid());
    attach.set_awaiting_exec(true);
    attach.set_follow_children(!options_.no_follow);
    if (auto target = session_.Attach(attach); !target) return tl::unexpected(target.error());
    if (!lines.empty()) {
      auto defined = session_.Define(options_.definitions.Request(lines));
      if (!defined)
        return tl::unexpected(
            options_.definitions.AsTyped(lines, program_, std::move(defined).error()));
    }
    return session_.Stream(options_.stream.count, *output.writer, output.output);
  }

  // The command has not run: let go of it, then its pipe's end lets it go away.
  int Abandon(const RemoteError& error) {
    ExitCode code = talk_.Fail(error);
    connection_lost_ = code == ExitCode::kConnect;
    session_.Abandon();
    return static_cast<int>(code);
  }

  int Watch(StreamOutput& output) {
    StopOptions stop;
    stop.duration_seconds = options_.stream.duration_seconds;
    stop.status_line = false;  // the terminal is the command's
    stop.command = &command_;
    StopReason reason = WaitForStop(session_.pump(), signals_, talk_, stop);
    if (reason == StopReason::kCommandEnded) session_.DrainEnded();
    auto end = session_.Finish();
    ExitCode code = end ? ExitCodeOf(reason, talk_) : talk_.Fail(end.error());
    connection_lost_ = code == ExitCode::kConnect;
    if (!CheckWritten(output.output, talk_)) code = ExitCode::kFailure;
    auto status = WaitForCommand(command_, signals_, reason);
    if (!status) return static_cast<int>(ExitCode::kInterrupted);
    return code == ExitCode::kOk ? StatusToExit(*status) : static_cast<int>(code);
  }

  const RunOptions& options_;
  std::string program_;  // its file, if its path is known
  Command& command_;
  Signals& signals_;
  Talk& talk_;
  TracingSession session_;
  bool connection_lost_ = false;
};

// The order matters: processes are forked before signals are blocked and before gRPC has threads.
Result<int> Run(const RunOptions& options, const Invocation& invocation, Talk& talk) {
  if (invocation.command.empty()) return NoCommand();
  PROBED_TRY(auto lines, options.definitions.Lines());
  PROBED_TRY(StreamOutput output, OpenStreamOutput(options.stream));
  PROBED_TRY(Endpoint endpoint, FindEndpoint(invocation.endpoint, Fallback::kPrivateDaemon));
  PROBED_TRY(Command command, Command::Fork(invocation.command, endpoint.peer));
  Signals signals;
  PROBED_TRY(Connection connection, Connect(invocation, std::move(endpoint)));
  Runner runner(options, PathOf(invocation.command.front()), command, *connection.api, signals,
                talk);
  int status = runner.Run(lines, output);
  if (runner.connection_lost()) ReportDaemonLog(connection, talk);
  return status;
}

}  // namespace

void AddRun(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* verb =
      AddVerb(app, invocation, "run",
              "Run a command with probes armed before its first instruction.\n"
              "Example: probectl run -e 'r:bash/line /usr/bin/bash:readline "
              "line=+0($retval):string' -- bash -i",
              [options, &invocation](Talk& talk) {
                auto status = Run(*options, invocation, talk);
                return status.ok() ? *status : static_cast<int>(talk.Fail(status.error()));
              });
  verb->footer(
      "The command follows the options after --: probectl run [OPTIONS] -- COMMAND [ARGS]");
  AddDefinitionOptions(*verb, options->definitions);
  AddStreamOptions(*verb, options->stream);
  verb->add_flag("--no-follow", options->no_follow, "Do not follow forked children");
}

}  // namespace probed::client

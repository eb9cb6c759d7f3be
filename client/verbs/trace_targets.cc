#include "client/verbs/trace_targets.h"

#include <fmt/format.h>

#include "client/stop_watch.h"
#include "client/tracing_session.h"
#include "client/verbs/joiner.h"
#include "client/verbs/stream_output.h"

namespace probed::client {
namespace {

v1::AttachTargetRequest RequestFor(int pid, const TraceOptions& options) {
  v1::AttachTargetRequest request;
  request.set_pid(pid);
  request.set_follow_children(options.follow);
  return request;
}

Error AllHaveEnded() {
  return {.code = ErrorCode::kNotFound,
          .reason = "NO_SUCH_PROCESS",
          .message = "every process that was found has ended meanwhile",
          .hint = "--join takes those that start later, too; 'run' starts one",
          .metadata = {}};
}

// An interrupt ends a trace well, also one that has not begun.
ExitCode NoneCame(Talk& talk) {
  talk.Note("no process came");
  return ExitCode::kOk;
}

bool NothingAttached(ExitCode code) {
  return code != ExitCode::kOk && code != ExitCode::kPartial;
}

Reply<void> Begin(const TraceOptions& options, const std::vector<std::string>& lines,
                  TracingSession& session, StreamOutput& output) {
  // Created disabled: what happens before we listen would be lost.
  v1::CreateProbesRequest request = options.definitions.Request(lines);
  request.set_disabled(true);
  if (auto defined = session.Define(std::move(request)); !defined) return defined;
  auto streaming = session.Stream(options.stream.count, *output.writer, output.output);
  if (!streaming) return streaming;
  return session.Enable();
}

std::string DescribeTargets(const std::vector<v1::Target>& targets) {
  std::string text;
  for (const auto& target : targets) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", target.pid(), target.comm());
  }
  return text;
}

// Of those that others have as well, only what is this command's is gone.
std::string DescribeLeft(const TracingSession& session) {
  std::vector<v1::Target> left, held;
  for (const auto& target : session.targets()) {
    (session.is_held_by_others(target) ? held : left).push_back(target);
  }
  std::string text = left.empty() ? "" : "detached from " + DescribeTargets(left);
  if (held.empty()) return text;
  return fmt::format("{}{}our probes are gone, and others hold on to {}", text,
                     text.empty() ? "" : "; ", DescribeTargets(held));
}

std::string DescribeEnd(StopReason reason, const TraceOptions& options,
                        const TracingSession& session) {
  const auto& targets = session.targets();
  if (targets.empty() && options.processes.others_come()) return "every process ended";
  if (targets.empty()) return "nothing of ours is left in the kernel";
  return reason == StopReason::kTargetsEnded ? DescribeTargets(targets) + " ended"
                                             : DescribeLeft(session);
}

// Attaches, defines and subscribes. kOk or kPartial: the trace runs.
ExitCode SetUp(const TraceOptions& options, const std::vector<int>& pids,
               const std::vector<std::string>& lines, TracingSession& session, StreamOutput& output,
               Talk& talk) {
  ExitCode attached = AttachAll(options, pids, talk, [&](const v1::AttachTargetRequest& request) {
    return session.Attach(request);
  });
  if (NothingAttached(attached)) return attached;
  auto begun = Begin(options, lines, session, output);
  if (begun) return attached;
  const auto& targets = session.targets();
  const std::string program = targets.empty() ? "" : targets.front().executable();
  ExitCode code = talk.Fail(options.definitions.AsTyped(lines, program, begun.error()));
  session.Abandon();
  return code;
}

}  // namespace

ExitCode AttachAll(const TraceOptions& options, const std::vector<int>& pids, Talk& talk,
                   const std::function<Reply<v1::Target>(const v1::AttachTargetRequest&)>& attach) {
  ExitCode worst = ExitCode::kOk;
  size_t attached = 0;
  for (int pid : pids) {
    auto target = attach(RequestFor(pid, options));
    if (target) {
      ++attached;
    } else if (options.processes.pids.empty() && HasEnded(target.error())) {
      talk.Note(fmt::format("{} has ended meanwhile", pid));
    } else {
      ExitCode code = talk.Fail(target.error());
      if (worst == ExitCode::kOk) worst = code;
    }
  }
  const bool all_ended = attached == 0 && worst == ExitCode::kOk && !pids.empty();
  if (all_ended) return talk.Fail(AllHaveEnded());
  return worst != ExitCode::kOk && attached != 0 ? ExitCode::kPartial : worst;
}

ExitCode TraceTargets(const TraceOptions& options,
                      const std::optional<v1::FindProcessesRequest>& selection,
                      const std::vector<std::string>& lines, Api& api, Signals& signals,
                      Talk& talk) {
  auto output = OpenStreamOutput(options.stream);
  if (!output.ok()) return talk.Fail(output.error());
  auto pids = selection ? FindPids(options.processes, options.stream.duration_seconds, *selection,
                                   api, &signals, talk)
                        : Reply<std::vector<int>>();
  // That too is a trace of a duration, in which nothing happened.
  if (!pids && pids.error().error.reason == kNoneMatched) {
    talk.Warn(pids.error().error.message);
    return ExitCode::kOk;
  }
  if (!pids) return talk.Fail(pids.error());
  if (selection && pids->empty()) return NoneCame(talk);
  TracingSession session(api, talk);
  if (options.processes.others_come()) session.ExpectOthers();
  std::optional<EndOnInterrupt> nothing_yet(std::in_place, signals);
  ExitCode attached = SetUp(options, *pids, lines, session, *output, talk);
  nothing_yet.reset();
  if (NothingAttached(attached)) return attached;
  talk.Note(
      fmt::format("{} {}; Ctrl-C {}", selection ? "attached to" : "tracing",
                  session.targets().empty() ? "the kernel" : DescribeTargets(session.targets()),
                  selection ? "detaches" : "ends it"));
  StopOptions stop;
  stop.duration_seconds = options.stream.duration_seconds;
  stop.each_second = [&] { session.TellSlowProbes(); };
  std::optional<Joiner> joiner;
  if (selection && options.processes.others_come()) {
    joiner.emplace(options.processes, *selection, RequestFor(0, options), api, session, talk);
    stop.turn_fd = joiner->fd();
    stop.each_turn = [&] { joiner->Turn(); };
  }
  StopReason reason = WaitForStop(session.pump(), signals, talk, stop);
  joiner.reset();
  signals.LetInterruptsEndUs();
  auto end = session.Finish();
  if (!end) return talk.Fail(end.error());
  talk.Note(DescribeEnd(reason, options, session));
  if (!CheckWritten(output->output, talk)) return ExitCode::kFailure;
  ExitCode judged = ExitCodeOf(reason, talk);
  return judged == ExitCode::kOk ? attached : judged;
}

}  // namespace probed::client

#include "daemon/convert/target.h"

#include <fmt/format.h>

#include "daemon/convert/duration.h"
#include "daemon/convert/names.h"
#include "daemon/convert/text.h"
#include "engine/sys/proc.h"

namespace probed::daemon {
namespace {

constexpr std::chrono::milliseconds kMaxDeadline = std::chrono::minutes(5);

v1::Target::State ToProto(engine::TargetState state) {
  switch (state) {
    case engine::TargetState::kRunning:
      return v1::Target::STATE_RUNNING;
    case engine::TargetState::kExited:
      return v1::Target::STATE_EXITED;
    case engine::TargetState::kDetached:
      return v1::Target::STATE_DETACHED;
  }
  return v1::Target::STATE_UNSPECIFIED;
}

Result<std::chrono::milliseconds> ToMilliseconds(const google::protobuf::Duration& duration) {
  const std::chrono::milliseconds value(duration.seconds() * 1000 + duration.nanos() / 1'000'000);
  if (value.count() > 0 && duration.seconds() < 3600 && value <= kMaxDeadline) return value;
  return Error{ErrorCode::kInvalidArgument,
               "INVALID_DEADLINE",
               "deadline must be more than 0 and at most 5 minutes",
               "leave it out for 5 seconds",
               {}};
}

Error InvalidSelection(std::string message, std::string hint) {
  return Error{
      ErrorCode::kInvalidArgument, "INVALID_SELECTION", std::move(message), std::move(hint), {}};
}

Error InvalidLaunch(std::string message, std::string hint) {
  return Error{
      ErrorCode::kInvalidArgument, "INVALID_LAUNCH", std::move(message), std::move(hint), {}};
}

}  // namespace

v1::Target ToProto(const engine::TargetInfo& target) {
  v1::Target out;
  out.set_name(TargetName(target.id));
  out.set_pid(target.id.pid);
  out.set_start_ticks(target.id.start_ticks);
  out.set_executable(Utf8(target.executable));
  out.set_comm(Utf8(target.comm));
  out.set_state(ToProto(target.state));
  out.set_threads(target.threads);
  out.set_sites(target.sites);
  if (target.root != target.id) out.set_root(TargetName(target.root));
  *out.mutable_max_stop() = DurationOfNanoseconds(target.attach_stop_ns);
  *out.mutable_total_stop() = DurationOfNanoseconds(target.stop_total_ns);
  return out;
}

v1::DetachTargetResponse ToProto(const engine::DetachReport& report) {
  v1::DetachTargetResponse out;
  out.set_sites_restored(report.sites_restored);
  out.set_bytes_verified(report.bytes_verified);
  out.set_returns_restored(report.returns_restored);
  out.set_warning(Utf8(report.warning));
  out.set_detached(true);
  return out;
}

Result<engine::AttachOptions> ToOptions(const v1::AttachTargetRequest& request) {
  if (request.pid() <= 0)
    return Error{ErrorCode::kInvalidArgument,
                 "INVALID_PID",
                 fmt::format("{} is not a process id", request.pid()),
                 "a number above 0",
                 {}};
  engine::AttachOptions options;
  options.follow_children = request.follow_children();
  options.awaiting_exec = request.awaiting_exec();
  if (request.has_deadline()) {
    PROBED_TRY(options.deadline, ToMilliseconds(request.deadline()));
  }
  return options;
}

Result<engine::LaunchOptions> ToOptions(const v1::LaunchTargetRequest& request,
                                        const Caller& caller) {
  if (request.argv().empty() || request.argv(0).empty())
    return InvalidLaunch("argv is empty", "the program's path first, then its arguments");
  engine::LaunchOptions options;
  options.argv.assign(request.argv().begin(), request.argv().end());
  for (const std::string& variable : request.environment()) {
    if (variable.find('=') == std::string::npos)
      return InvalidLaunch(fmt::format("environment entry \"{}\" has no =", variable),
                           "NAME=value");
    options.environment.push_back(variable);
  }
  options.working_directory = request.working_directory();
  options.uid = caller.uid;
  options.gid = caller.gid;
  options.follow_children = !request.has_follow_children() || request.follow_children();
  return options;
}

Result<ProcessSelection> ToSelection(const v1::FindProcessesRequest& request) {
  ProcessSelection selection{.name = request.name(),
                             .executable = request.executable(),
                             .uid = {},
                             .cgroup = request.cgroup(),
                             .container = request.container(),
                             .mapped_file = request.mapped_file()};
  if (request.has_uid()) selection.uid = request.uid();
  if (selection.empty())
    return InvalidSelection(
        "nothing is said about the processes to find",
        "set a name, an executable, a user, a control group, a container or a file");
  for (const std::string* path :
       {&selection.executable, &selection.cgroup, &selection.mapped_file}) {
    if (!path->empty() && path->front() != '/')
      return InvalidSelection(fmt::format("\"{}\" is not an absolute path", *path), "");
  }
  return selection;
}

Result<std::chrono::milliseconds> ToWait(const v1::FindProcessesRequest& request) {
  constexpr std::chrono::seconds kMost{10};
  const auto& wait = request.wait();
  const std::chrono::milliseconds value(wait.seconds() * 1000 + wait.nanos() / 1'000'000);
  if (wait.seconds() < 3600 && value.count() >= 0 && value <= kMost) return value;
  return InvalidSelection("wait must be at most 10 seconds", "ask again");
}

v1::Process ToProcess(event::TargetId id) {
  v1::Process out;
  out.set_pid(id.pid);
  out.set_start_ticks(id.start_ticks);
  out.set_comm(Utf8(sys::ReadComm(id.pid)));
  out.set_executable(Utf8(sys::ReadExecutable(id.pid)));
  return out;
}

}  // namespace probed::daemon

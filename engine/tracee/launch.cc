#include "engine/tracee/launch.h"

#include <cstring>

#include "base/clock.h"

namespace probed::tracee {
namespace {

// A program on a slow network file system may take long to start.
constexpr uint64_t kExecDeadlineNs = 30'000'000'000;

Error ExecFailed(const LaunchRequest& request, int error_number) {
  Error error = ErrnoError(error_number, "run " + request.argv[0]);
  error.reason = "EXEC_FAILED";
  return error;
}

}  // namespace

Result<Process*> Launcher::Launch(const LaunchRequest& request) {
  PROBED_TRY(sys::SpawnedChild child,
             sys::SpawnedChild::Fork({.argv = request.argv,
                                      .environment = request.environment,
                                      .working_directory = request.working_directory,
                                      .uid = request.uid,
                                      .gid = request.gid}));
  PROBED_TRY(Process * process, attacher_.Attach({.pid = child.pid(),
                                                  .follow_children = request.follow_children,
                                                  .awaiting_exec = true}));
  Status started = RunToExec(*process, child);
  if (started.ok()) return process;
  if (int failure = child.FailureErrno(); failure != 0) return ExecFailed(request, failure);
  return std::move(started).error();
}

Status Launcher::RunToExec(Process& process, sys::SpawnedChild& child) {
  uint64_t deadline_ns = MonotonicNow() + kExecDeadlineNs;
  pid_t pid = child.pid();
  process.HoldAtExec();
  child.LetExec();
  while (registry_.FindProcess(pid) == &process && MonotonicNow() < deadline_ns) {
    bool has_execed = !process.awaiting_exec();
    if (has_execed) return {};
    quiescer_.Pump(deadline_ns);
  }
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "process " + std::to_string(pid) + " did not reach its program",
               .hint = "",
               .metadata = {{"pid", std::to_string(pid)}}};
}

}  // namespace probed::tracee

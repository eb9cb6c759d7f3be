#include "client/exit_code.h"

#include <sys/wait.h>

namespace probed::client {

ExitCode ExitCodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return ExitCode::kUsage;
    case ErrorCode::kNotFound:
      return ExitCode::kNotFound;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kFailedPrecondition:
    case ErrorCode::kAborted:
      return ExitCode::kPrecondition;
    case ErrorCode::kPermissionDenied:
      return ExitCode::kPermission;
    case ErrorCode::kUnavailable:
      return ExitCode::kConnect;
    case ErrorCode::kDeadlineExceeded:
      return ExitCode::kTimeout;
    case ErrorCode::kCancelled:
      return ExitCode::kInterrupted;
    case ErrorCode::kResourceExhausted:
    case ErrorCode::kUnimplemented:
    case ErrorCode::kInternal:
      break;
  }
  return ExitCode::kFailure;
}

std::string_view ExitCodeName(ExitCode code) {
  switch (code) {
    case ExitCode::kOk:
      return "ok";
    case ExitCode::kFailure:
      return "failure";
    case ExitCode::kUsage:
      return "usage";
    case ExitCode::kConnect:
      return "connect";
    case ExitCode::kPermission:
      return "permission";
    case ExitCode::kNotFound:
      return "not found";
    case ExitCode::kPrecondition:
      return "precondition";
    case ExitCode::kPartial:
      return "partial";
    case ExitCode::kTimeout:
      return "timeout";
    case ExitCode::kCannotExecute:
      return "cannot execute";
    case ExitCode::kCommandNotFound:
      return "command not found";
    case ExitCode::kInterrupted:
      return "interrupted";
  }
  return "failure";
}

int StatusToExit(int wait_status) {
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

}  // namespace probed::client

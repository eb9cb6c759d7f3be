#include "base/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace probed {
namespace {

ErrorCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case EPERM:
    case EACCES:
      return ErrorCode::kPermissionDenied;
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
      return ErrorCode::kNotFound;
    case EEXIST:
      return ErrorCode::kAlreadyExists;
    case EINVAL:
    case ENAMETOOLONG:
    case ERANGE:
    case E2BIG:
      return ErrorCode::kInvalidArgument;
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
      return ErrorCode::kResourceExhausted;
    case ENOSYS:
      return ErrorCode::kUnimplemented;
    default:
      return ErrorCode::kInternal;
  }
}

}  // namespace

std::string Error::ToString() const {
  std::string text = message + " (" + reason + ")";
  if (!hint.empty()) text += "; try: " + hint;
  return text;
}

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case ErrorCode::kNotFound:
      return "NOT_FOUND";
    case ErrorCode::kAlreadyExists:
      return "ALREADY_EXISTS";
    case ErrorCode::kPermissionDenied:
      return "PERMISSION_DENIED";
    case ErrorCode::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case ErrorCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case ErrorCode::kUnavailable:
      return "UNAVAILABLE";
    case ErrorCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case ErrorCode::kAborted:
      return "ABORTED";
    case ErrorCode::kCancelled:
      return "CANCELLED";
    case ErrorCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case ErrorCode::kInternal:
      return "INTERNAL";
  }
  return "INTERNAL";
}

namespace {

// What somebody can do about it who has done nothing wrong.
std::string HintFor(int error_number) {
  if (error_number == EMFILE)
    return "a higher limit of open files for the program that says this: ulimit -n, or "
           "LimitNOFILE= in its unit";
  if (error_number == ENFILE)
    return "a higher limit of open files for the machine: sysctl fs.file-max";
  return {};
}

}  // namespace

Error ErrnoError(int error_number, std::string_view what) {
  Error error;
  error.code = CodeOfErrno(error_number);
  error.reason = "SYSTEM_CALL_FAILED";
  error.message = std::string(what) + ": " + std::strerror(error_number);
  error.hint = HintFor(error_number);
  error.metadata["errno"] = std::to_string(error_number);
  return error;
}

}  // namespace probed

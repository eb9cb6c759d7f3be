#pragma once
// What went wrong, as a value: a class for programs, a reason for scripts, words for people.

#include <map>
#include <string>
#include <string_view>

namespace probed {

// The families of google.rpc.Code that this project uses, so the edge converts one to one.
enum class ErrorCode {
  kInvalidArgument,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kFailedPrecondition,
  kResourceExhausted,
  kUnavailable,
  kDeadlineExceeded,
  kAborted,
  kCancelled,
  kUnimplemented,
  kInternal,
};

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  // UPPER_SNAKE word that scripts may match: the contract, unlike `message`.
  std::string reason;
  std::string message;
  // What the user could try; empty when there is nothing to try.
  std::string hint;
  std::map<std::string, std::string> metadata;

  // "message (reason); try: hint", for logs and tests.
  std::string ToString() const;
};

std::string_view ErrorCodeName(ErrorCode code);

// An Error for a failed system call. Takes `error_number` by value because errno is gone as soon as
// anything else runs; `what` names the call and its object, e.g. "open /proc/12/maps".
Error ErrnoError(int error_number, std::string_view what);

}  // namespace probed

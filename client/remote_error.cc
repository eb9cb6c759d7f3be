#include "client/remote_error.h"

#include <grpcpp/support/status.h>

#include <utility>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace probed::client {
namespace {

ErrorCode CodeOf(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::OUT_OF_RANGE:
      return ErrorCode::kInvalidArgument;
    case grpc::StatusCode::NOT_FOUND:
      return ErrorCode::kNotFound;
    case grpc::StatusCode::ALREADY_EXISTS:
      return ErrorCode::kAlreadyExists;
    case grpc::StatusCode::PERMISSION_DENIED:
    case grpc::StatusCode::UNAUTHENTICATED:
      return ErrorCode::kPermissionDenied;
    case grpc::StatusCode::FAILED_PRECONDITION:
      return ErrorCode::kFailedPrecondition;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return ErrorCode::kResourceExhausted;
    case grpc::StatusCode::UNAVAILABLE:
      return ErrorCode::kUnavailable;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ErrorCode::kDeadlineExceeded;
    case grpc::StatusCode::ABORTED:
      return ErrorCode::kAborted;
    case grpc::StatusCode::CANCELLED:
      return ErrorCode::kCancelled;
    case grpc::StatusCode::UNIMPLEMENTED:
      return ErrorCode::kUnimplemented;
    default:
      return ErrorCode::kInternal;
  }
}

void AddDetail(const google::protobuf::Any& detail, RemoteError& out) {
  if (google::rpc::ErrorInfo info; detail.UnpackTo(&info)) {
    out.error.reason = info.reason();
    out.error.metadata.insert(info.metadata().begin(), info.metadata().end());
  } else if (google::rpc::Help help; detail.UnpackTo(&help)) {
    for (const auto& link : help.links()) {
      if (!out.error.hint.empty()) out.error.hint += "; ";
      out.error.hint += link.description();
    }
  } else if (v1::LineVerdicts verdicts; detail.UnpackTo(&verdicts)) {
    out.verdicts.assign(verdicts.verdicts().begin(), verdicts.verdicts().end());
  }
}

}  // namespace

RemoteError FromStatus(const grpc::Status& status) {
  RemoteError result;
  result.error.code = CodeOf(status.error_code());
  result.error.message = status.error_message();
  if (google::rpc::Status rich; rich.ParseFromString(status.error_details())) {
    for (const auto& detail : rich.details())
      AddDetail(detail, result);
  }
  if (result.error.reason.empty()) result.error.reason = ErrorCodeName(result.error.code);
  return result;
}

}  // namespace probed::client

#include "daemon/convert/status.h"

#include <cerrno>

#include <fmt/format.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace probed::daemon {
namespace {

// Serialized size of all details. Base64 in the trailer adds a third, the message has a bound of
// its own, and the sum must stay below 8 KiB.
constexpr size_t kMaxDetailBytes = 4096;
constexpr size_t kMaxMessageBytes = 1024;

std::string Cut(const std::string& text) {
  if (text.size() <= kMaxMessageBytes) return text;
  return text.substr(0, kMaxMessageBytes) + "...";
}

google::rpc::Status Details(const Error& error) {
  google::rpc::Status status;
  status.set_code(ToGrpcCode(error.code));
  status.set_message(Cut(error.message));
  google::rpc::ErrorInfo info;
  info.set_reason(error.reason);
  info.set_domain("probed");
  for (const auto& [key, value] : error.metadata)
    (*info.mutable_metadata())[key] = Cut(value);
  status.add_details()->PackFrom(info);
  if (!error.hint.empty()) {
    google::rpc::Help help;
    help.add_links()->set_description(Cut(error.hint));
    status.add_details()->PackFrom(help);
  }
  return status;
}

grpc::Status Serialized(const google::rpc::Status& details) {
  return grpc::Status(static_cast<grpc::StatusCode>(details.code()), details.message(),
                      details.SerializeAsString());
}

Error Summary(const std::vector<engine::LineError>& errors) {
  const engine::LineError& first = errors.front();
  Error error;
  error.code = first.error.code;
  error.reason = errors.size() == 1 ? first.error.reason : "DEFINITIONS_REFUSED";
  error.message = fmt::format("line {}: {}", first.line + 1, first.error.message);
  if (errors.size() > 1) error.message += fmt::format(" (and {} more)", errors.size() - 1);
  error.hint = first.error.hint;
  error.metadata = first.error.metadata;
  error.metadata["refused"] = std::to_string(errors.size());
  return error;
}

// One refused line in both forms. A line too long to show keeps its number and its words.
struct LineDetail {
  google::rpc::BadRequest::FieldViolation violation;
  v1::LineVerdict verdict;
  size_t size() const { return violation.ByteSizeLong() + verdict.ByteSizeLong() + 16; }
};

LineDetail DetailOf(const engine::LineError& error, const std::string& line) {
  LineDetail detail;
  detail.verdict = ToVerdict(error, line);
  if (detail.verdict.ByteSizeLong() > kMaxDetailBytes / 2) {
    detail.verdict.set_command(detail.verdict.command().substr(0, 64) + "...");
    detail.verdict.set_explanation(Cut(detail.verdict.explanation()));
  }
  detail.violation.set_field(fmt::format("definitions[{}]", error.line));
  detail.violation.set_description(Cut(error.error.message));
  return detail;
}

}  // namespace

grpc::StatusCode ToGrpcCode(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kAlreadyExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case ErrorCode::kPermissionDenied:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::kFailedPrecondition:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kResourceExhausted:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kUnavailable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::kDeadlineExceeded:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kAborted:
      return grpc::StatusCode::ABORTED;
    case ErrorCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case ErrorCode::kUnimplemented:
      return grpc::StatusCode::UNIMPLEMENTED;
    case ErrorCode::kInternal:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::INTERNAL;
}

int ErrnoOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return EINVAL;
    case ErrorCode::kNotFound:
      return ENOENT;
    case ErrorCode::kAlreadyExists:
      return EEXIST;
    case ErrorCode::kPermissionDenied:
      return EACCES;
    case ErrorCode::kFailedPrecondition:
      return EBUSY;
    case ErrorCode::kResourceExhausted:
      return ENOMEM;
    case ErrorCode::kUnavailable:
      return EAGAIN;
    case ErrorCode::kDeadlineExceeded:
      return ETIMEDOUT;
    case ErrorCode::kAborted:
    case ErrorCode::kCancelled:
      return ECANCELED;
    case ErrorCode::kUnimplemented:
      return EOPNOTSUPP;
    case ErrorCode::kInternal:
      return EIO;
  }
  return EIO;
}

grpc::Status ToStatus(const Error& error) {
  return Serialized(Details(error));
}

v1::LineVerdict ToVerdict(const engine::LineError& error, const std::string& line) {
  const lang::Verdict& from = error.verdict;
  v1::LineVerdict verdict;
  verdict.set_line(static_cast<uint32_t>(error.line));
  verdict.set_command(from.command.empty() ? line : from.command);
  verdict.set_error_number(from.error_number != 0 ? from.error_number : ErrnoOf(error.error.code));
  if (from.message) verdict.set_message(*from.message);
  if (from.caret) verdict.set_caret(*from.caret);
  verdict.set_explanation(from.explanation.empty() ? error.error.message : from.explanation);
  verdict.set_reason(from.code.empty() ? error.error.reason : from.code);
  verdict.set_in_filter(error.in_filter);
  return verdict;
}

grpc::Status Refused(const engine::LineError& error) {
  if (error.verdict.code.empty()) return ToStatus(error.error);
  google::rpc::Status status = Details(error.error);
  v1::LineVerdicts verdicts;
  *verdicts.add_verdicts() = DetailOf(error, "").verdict;
  status.add_details()->PackFrom(verdicts);
  return Serialized(status);
}

grpc::Status RefusedLines(const std::vector<engine::LineError>& errors,
                          const std::vector<std::string>& lines) {
  google::rpc::BadRequest request;
  v1::LineVerdicts verdicts;
  Error summary = Summary(errors);
  size_t used = Details(summary).ByteSizeLong();
  for (const engine::LineError& error : errors) {
    LineDetail detail = DetailOf(error, error.line < lines.size() ? lines[error.line] : "");
    if (used + detail.size() > kMaxDetailBytes && verdicts.verdicts_size() > 0) break;
    used += detail.size();
    *request.add_field_violations() = std::move(detail.violation);
    *verdicts.add_verdicts() = std::move(detail.verdict);
  }
  summary.metadata["shown"] = std::to_string(verdicts.verdicts_size());
  google::rpc::Status status = Details(summary);
  status.add_details()->PackFrom(request);
  status.add_details()->PackFrom(verdicts);
  return Serialized(status);
}

}  // namespace probed::daemon

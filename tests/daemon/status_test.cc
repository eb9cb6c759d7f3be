#include "daemon/convert/status.h"

#include <cerrno>

#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace probed::daemon {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

template <class Message>
std::optional<Message> Find(const grpc::Status& status) {
  const google::rpc::Status details = DetailsOf(status);
  for (const auto& any : details.details()) {
    Message message;
    if (any.UnpackTo(&message)) return message;
  }
  return std::nullopt;
}

struct CodeRow {
  ErrorCode code;
  grpc::StatusCode grpc_code;
  int error_number;
};

class CodeTable : public testing::TestWithParam<CodeRow> {};

// The numbers are google.rpc.Code's and errno's, written out: the table is the contract.
INSTANTIATE_TEST_SUITE_P(
    Rows, CodeTable,
    testing::Values(
        CodeRow{ErrorCode::kInvalidArgument, static_cast<grpc::StatusCode>(3), EINVAL},
        CodeRow{ErrorCode::kNotFound, static_cast<grpc::StatusCode>(5), ENOENT},
        CodeRow{ErrorCode::kAlreadyExists, static_cast<grpc::StatusCode>(6), EEXIST},
        CodeRow{ErrorCode::kPermissionDenied, static_cast<grpc::StatusCode>(7), EACCES},
        CodeRow{ErrorCode::kFailedPrecondition, static_cast<grpc::StatusCode>(9), EBUSY},
        CodeRow{ErrorCode::kResourceExhausted, static_cast<grpc::StatusCode>(8), ENOMEM},
        CodeRow{ErrorCode::kUnavailable, static_cast<grpc::StatusCode>(14), EAGAIN},
        CodeRow{ErrorCode::kDeadlineExceeded, static_cast<grpc::StatusCode>(4), ETIMEDOUT},
        CodeRow{ErrorCode::kAborted, static_cast<grpc::StatusCode>(10), ECANCELED},
        CodeRow{ErrorCode::kCancelled, static_cast<grpc::StatusCode>(1), ECANCELED},
        CodeRow{ErrorCode::kUnimplemented, static_cast<grpc::StatusCode>(12), EOPNOTSUPP},
        CodeRow{ErrorCode::kInternal, static_cast<grpc::StatusCode>(13), EIO}),
    [](const auto& row) { return std::string(ErrorCodeName(row.param.code)); });

TEST_P(CodeTable, MapsTo) {
  EXPECT_EQ(ToGrpcCode(GetParam().code), GetParam().grpc_code);
  EXPECT_EQ(ErrnoOf(GetParam().code), GetParam().error_number);
  const grpc::Status status = ToStatus(Error{GetParam().code, "SOME_REASON", "words", "", {}});
  EXPECT_EQ(status.error_code(), GetParam().grpc_code);
  EXPECT_EQ(DetailsOf(status).code(), GetParam().grpc_code);
}

TEST(Status, CarriesReasonMetadataAndHint) {
  const grpc::Status status = ToStatus(Error{ErrorCode::kFailedPrecondition,
                                             "ALREADY_TRACED",
                                             "gdb traces it",
                                             "detach gdb",
                                             {{"tracer_pid", "9"}}});
  EXPECT_EQ(status.error_message(), "gdb traces it");
  const auto info = Find<google::rpc::ErrorInfo>(status);
  ASSERT_TRUE(info);
  EXPECT_EQ(info->reason(), "ALREADY_TRACED");
  EXPECT_EQ(info->domain(), "probed");
  EXPECT_EQ(info->metadata().at("tracer_pid"), "9");
  EXPECT_EQ(Find<google::rpc::Help>(status)->links(0).description(), "detach gdb");
}

TEST(Status, NoHelpWithoutHint) {
  EXPECT_FALSE(Find<google::rpc::Help>(ToStatus(Error{ErrorCode::kInternal, "R", "m", "", {}})));
}

engine::LineError Refused(size_t line) {
  engine::LineError error;
  error.line = line;
  error.error =
      Error{ErrorCode::kInvalidArgument, "BAD_REG_NAME", "no such register", "use %di", {}};
  error.verdict.error_number = EINVAL;
  error.verdict.code = "BAD_REG_NAME";
  error.verdict.message = "Invalid register name";
  error.verdict.caret = 12;
  error.verdict.command = "p /bin/x:0x1 %zz";
  error.verdict.explanation = "x86-64 has no register zz";
  return error;
}

TEST(RefusedLines, CarryTheKernelsViewAndOurs) {
  const grpc::Status status = RefusedLines({Refused(1)}, {"p a", "p b"});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Find<google::rpc::ErrorInfo>(status)->reason(), "BAD_REG_NAME");
  const auto verdicts = Find<v1::LineVerdicts>(status);
  ASSERT_TRUE(verdicts);
  ASSERT_EQ(verdicts->verdicts_size(), 1);
  const v1::LineVerdict& verdict = verdicts->verdicts(0);
  EXPECT_EQ(verdict.line(), 1u);
  EXPECT_EQ(verdict.command(), "p /bin/x:0x1 %zz");
  EXPECT_EQ(verdict.error_number(), EINVAL);
  EXPECT_EQ(verdict.message(), "Invalid register name");
  EXPECT_EQ(verdict.caret(), 12);
  EXPECT_EQ(verdict.explanation(), "x86-64 has no register zz");
  EXPECT_EQ(Find<google::rpc::BadRequest>(status)->field_violations(0).field(), "definitions[1]");
}

TEST(RefusedLines, WithoutAVerdictUseTheError) {
  engine::LineError error;
  error.line = 0;
  error.error = Error{ErrorCode::kNotFound, "SYMBOL_NOT_FOUND", "no symbol foo", "", {}};
  const v1::LineVerdict verdict = ToVerdict(error, "p:x /bin/x:foo");
  EXPECT_EQ(verdict.command(), "p:x /bin/x:foo");
  EXPECT_EQ(verdict.error_number(), ENOENT);
  EXPECT_FALSE(verdict.has_message());
  EXPECT_FALSE(verdict.has_caret());
  EXPECT_EQ(verdict.explanation(), "no symbol foo");
  EXPECT_EQ(verdict.reason(), "SYMBOL_NOT_FOUND");
}

// gRPC clients refuse trailers of more than 8 KiB by default, and then the caller learns nothing.
TEST(RefusedLines, ManyFitIntoTheDefaultTrailer) {
  std::vector<engine::LineError> errors;
  for (size_t i = 0; i < 10'000; ++i)
    errors.push_back(Refused(i));
  const grpc::Status status = RefusedLines(errors, std::vector<std::string>(10'000, "p x"));
  const size_t base64 = status.error_details().size() * 4 / 3;
  EXPECT_LT(base64 + status.error_message().size(), 7u * 1024);
  const auto info = Find<google::rpc::ErrorInfo>(status);
  EXPECT_EQ(info->metadata().at("refused"), "10000");
  EXPECT_EQ(info->metadata().at("shown"),
            std::to_string(Find<v1::LineVerdicts>(status)->verdicts_size()));
  EXPECT_GE(Find<v1::LineVerdicts>(status)->verdicts_size(), 10);
}

TEST(RefusedLines, OneHugeLineFitsToo) {
  engine::LineError error = Refused(0);
  error.verdict.command = std::string(60'000, 'x');
  error.error.message = std::string(60'000, 'y');
  error.verdict.explanation = std::string(60'000, 'z');
  const grpc::Status status = RefusedLines({error}, {error.verdict.command});
  EXPECT_LT(status.error_details().size() * 4 / 3 + status.error_message().size(), 8u * 1024);
  EXPECT_EQ(Find<v1::LineVerdicts>(status)->verdicts_size(), 1);
}

}  // namespace
}  // namespace probed::daemon

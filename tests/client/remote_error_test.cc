#include "client/remote_error.h"

#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace probed::client {
namespace {

TEST(FromStatus, PlainStatusGetsItsCodeAsReason) {
  auto remote = FromStatus(grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone"));
  EXPECT_EQ(remote.error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(remote.error.reason, "UNAVAILABLE");
  EXPECT_EQ(remote.error.message, "gone");
}

TEST(FromStatus, RichDetailsAreRead) {
  google::rpc::Status rich;
  google::rpc::ErrorInfo info;
  info.set_reason("TARGET_ALREADY_TRACED");
  (*info.mutable_metadata())["tracer_pid"] = "7";
  rich.add_details()->PackFrom(info);
  google::rpc::Help help;
  help.add_links()->set_description("stop the tracer");
  rich.add_details()->PackFrom(help);
  v1::LineVerdicts verdicts;
  verdicts.add_verdicts()->set_line(4);
  rich.add_details()->PackFrom(verdicts);
  auto remote = FromStatus(
      grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "traced", rich.SerializeAsString()));
  EXPECT_EQ(remote.error.code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(remote.error.reason, "TARGET_ALREADY_TRACED");
  EXPECT_EQ(remote.error.hint, "stop the tracer");
  EXPECT_EQ(remote.error.metadata.at("tracer_pid"), "7");
  ASSERT_EQ(remote.verdicts.size(), 1u);
  EXPECT_EQ(remote.verdicts[0].line(), 4u);
}

TEST(FromStatus, GarbageInTheDetailsIsIgnored) {
  auto remote = FromStatus(grpc::Status(grpc::StatusCode::INTERNAL, "m", "\xff\xff\xff"));
  EXPECT_EQ(remote.error.reason, "INTERNAL");
}

}  // namespace
}  // namespace probed::client

#include "client/exit_code.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

struct Row {
  ErrorCode error;
  int status;
  const char* name;
};

class ExitCodeTable : public ::testing::TestWithParam<Row> {};

TEST_P(ExitCodeTable, OneCodePerFamily) {
  ExitCode code = ExitCodeFor(GetParam().error);
  EXPECT_EQ(static_cast<int>(code), GetParam().status);
  EXPECT_EQ(ExitCodeName(code), GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(Rows, ExitCodeTable,
                         ::testing::Values(Row{ErrorCode::kInternal, 1, "failure"},
                                           Row{ErrorCode::kUnimplemented, 1, "failure"},
                                           Row{ErrorCode::kResourceExhausted, 1, "failure"},
                                           Row{ErrorCode::kInvalidArgument, 2, "usage"},
                                           Row{ErrorCode::kUnavailable, 3, "connect"},
                                           Row{ErrorCode::kPermissionDenied, 4, "permission"},
                                           Row{ErrorCode::kNotFound, 5, "not found"},
                                           Row{ErrorCode::kFailedPrecondition, 6, "precondition"},
                                           Row{ErrorCode::kAlreadyExists, 6, "precondition"},
                                           Row{ErrorCode::kAborted, 6, "precondition"},
                                           Row{ErrorCode::kDeadlineExceeded, 124, "timeout"},
                                           Row{ErrorCode::kCancelled, 130, "interrupted"}));

TEST(StatusToExit, IsTheShells) {
  EXPECT_EQ(StatusToExit(0), 0);
  EXPECT_EQ(StatusToExit(37 << 8), 37);
  EXPECT_EQ(StatusToExit(9), 137);
  EXPECT_EQ(StatusToExit(11 | 0x80), 139);  // with a core
}

}  // namespace
}  // namespace probed::client

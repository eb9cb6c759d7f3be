#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace probed {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) {
    return Error{.code = ErrorCode::kInvalidArgument,
                 .reason = "ODD",
                 .message = "odd",
                 .hint = "an even number",
                 .metadata = {}};
  }
  return number / 2;
}

Result<int> Quarter(int number) {
  PROBED_TRY(int half, Half(number));
  return Half(half);
}

TEST(Result, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(Quarter(8).value(), 2);
  ASSERT_FALSE(Quarter(6).ok());
  EXPECT_EQ(Quarter(6).error().reason, "ODD");
  EXPECT_EQ(Quarter(6).error().ToString(), "odd (ODD); try: an even number");
}

TEST(ErrnoError, KeepsErrnoAndChoosesACode) {
  Error error = ErrnoError(ENOENT, "open /x");
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.metadata["errno"], std::to_string(ENOENT));
  EXPECT_EQ(error.hint, "");
}

TEST(ErrnoError, SaysWhatToDoAboutLimits) {
  EXPECT_NE(ErrnoError(EMFILE, "open /x").hint.find("ulimit -n"), std::string::npos);
  EXPECT_NE(ErrnoError(ENFILE, "open /x").hint.find("fs.file-max"), std::string::npos);
}

}  // namespace
}  // namespace probed

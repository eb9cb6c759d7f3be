#include "client/output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"

namespace probed::client {
namespace {

TEST(Output, WritesAllOfALargeBuffer) {
  std::string path = ::testing::TempDir() + "probed_output_test";
  auto output = Output::Open(path);
  ASSERT_TRUE(output.ok());
  std::string expected;
  for (int i = 0; i < 100'000; ++i) {
    std::string line = std::to_string(i) + "\n";
    output->buffer() += line;
    output->Commit();
    expected += line;
  }
  output->Flush();
  EXPECT_EQ(*ReadFile(path), expected);
  EXPECT_FALSE(output->closed());
  ::unlink(path.c_str());
}

TEST(Output, AFullDeviceIsAnError) {
  auto output = Output::Open("/dev/full");
  ASSERT_TRUE(output.ok());
  output->buffer() = "data";
  output->Flush();
  EXPECT_EQ(output->error_number(), ENOSPC);
  EXPECT_TRUE(output->closed());
}

TEST(Output, AReaderThatWentAwayIsNone) {
  ::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  auto output = Output::Open("/dev/fd/" + std::to_string(ends[1]));
  ASSERT_TRUE(output.ok());
  ::close(ends[0]);
  ::close(ends[1]);
  output->buffer() = "data";
  output->Flush();
  EXPECT_TRUE(output->closed());
  EXPECT_EQ(output->error_number(), 0);
}

TEST(Output, ADirectoryCannotBeWritten) {
  EXPECT_FALSE(Output::Open("/").ok());
}

}  // namespace
}  // namespace probed::client

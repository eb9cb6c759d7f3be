#include "daemon/boot_definitions.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace probed::daemon {
namespace {

using Lines = std::vector<std::string>;

TEST(BootParameter, IsTheKernels) {
  EXPECT_EQ(ParseBootParameter("p:a/b,do_sys_open,$arg1;r:a/c,do_sys_open,$retval"),
            (Lines{"p:a/b do_sys_open $arg1", "r:a/c do_sys_open $retval"}));
  EXPECT_EQ(ParseBootParameter("p vfs_read"), Lines{"p vfs_read"});
  EXPECT_EQ(ParseBootParameter(";;p,x,;,;"), Lines{"p x"});
  EXPECT_EQ(ParseBootParameter(""), Lines{});
}

class DefinitionFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/probed-definitions-XXXXXX";
    directory_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ + "/" + name) << text;
  }
  std::string directory_;
};

TEST_F(DefinitionFiles, AreReadInOrderOfTheirNames) {
  Write("20-b", "p:a/second vfs_read");
  Write("10-a", "# a comment\n\n  p:a/first  /bin/true:0x10 \r\n\t# another\n");
  Write(".hidden", "p:a/hidden vfs_read\n");
  const auto lines = ReadDefinitionFiles(directory_);
  ASSERT_TRUE(lines.ok()) << lines.error().ToString();
  EXPECT_EQ(*lines, (Lines{"p:a/first  /bin/true:0x10", "p:a/second vfs_read"}));
}

TEST_F(DefinitionFiles, NeedNotBeThere) {
  const auto lines = ReadDefinitionFiles(directory_ + "/none");
  ASSERT_TRUE(lines.ok());
  EXPECT_EQ(*lines, Lines{});
  Write("file", "");
  EXPECT_FALSE(ReadDefinitionFiles(directory_ + "/file").ok());
  std::filesystem::create_directory(directory_ + "/sub");
  EXPECT_FALSE(ReadDefinitionFiles(directory_).ok()) << "a directory is no file of lines";
}

}  // namespace
}  // namespace probed::daemon

#include "daemon/process_selection.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "engine/sys/proc.h"
#include "tests/daemon/child_process.h"

namespace probed::daemon {
namespace {

// A program under a name that no other process has.
class ProcessSelectionTest : public testing::Test {
 protected:
  ProcessSelectionTest() {
    char folder[] = "/tmp/probed-selection-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/choose-me";
    std::filesystem::copy_file("/bin/cat", path_);
    program_ = std::make_unique<ChildProcess>(std::vector<std::string>{path_, "-u"});
    program_->Say("started");
    EXPECT_EQ(program_->ReadLine(), "started");
  }
  ~ProcessSelectionTest() override { std::filesystem::remove_all(folder_); }

  bool Selects(const ProcessSelection& selection) { return IsSelected(selection, program_->pid()); }

  std::string folder_, path_;
  std::unique_ptr<ChildProcess> program_;
};

TEST_F(ProcessSelectionTest, ByNameOrPatternOfIt) {
  EXPECT_TRUE(Selects({.name = "choose-me"}));
  EXPECT_TRUE(Selects({.name = "choose-*"}));
  EXPECT_FALSE(Selects({.name = "choose"}));
  EXPECT_FALSE(Selects({.name = "cat"}));
}

TEST_F(ProcessSelectionTest, ByFileEvenIfThatIsCalledOtherwiseOrGone) {
  EXPECT_TRUE(Selects({.executable = path_}));
  const std::string other = folder_ + "/other";
  std::filesystem::create_hard_link(path_, other);
  EXPECT_TRUE(Selects({.executable = other}));
  EXPECT_FALSE(Selects({.executable = "/bin/cat"}));
  std::filesystem::remove(path_);
  EXPECT_TRUE(Selects({.executable = path_}));
  EXPECT_TRUE(Selects({.name = "choose-me"}));
}

TEST_F(ProcessSelectionTest, ByMappedFileEvenIfThatIsGone) {
  EXPECT_TRUE(Selects({.mapped_file = path_}));
  EXPECT_FALSE(Selects({.mapped_file = folder_ + "/never"}));
  const std::string other = folder_ + "/other";
  std::filesystem::create_hard_link(path_, other);
  EXPECT_TRUE(Selects({.mapped_file = other}));
  EXPECT_FALSE(Selects({.mapped_file = "/bin/cat"}));
  std::filesystem::remove(path_);
  EXPECT_TRUE(Selects({.mapped_file = path_}));
}

TEST_F(ProcessSelectionTest, NeverUsOrByMappedFileWhoWeDescendFrom) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_FALSE(IsSelected({.executable = self}, ::getpid()));
  EXPECT_FALSE(IsSelected({.mapped_file = self}, ::getpid()));
  const std::string parent = sys::ReadExecutable(::getppid());
  EXPECT_FALSE(IsSelected({.mapped_file = parent}, ::getppid()));
}

TEST_F(ProcessSelectionTest, ByUser) {
  EXPECT_TRUE(Selects({.uid = ::geteuid()}));
  EXPECT_FALSE(Selects({.uid = ::geteuid() + 1}));
}

TEST_F(ProcessSelectionTest, ByControlGroup) {
  const auto groups = sys::ReadControlGroups(program_->pid());
  if (groups.empty()) GTEST_SKIP() << "this kernel has no control groups";
  EXPECT_TRUE(Selects({.cgroup = groups.front()}));
  EXPECT_TRUE(Selects({.cgroup = "/"}));
  EXPECT_FALSE(Selects({.cgroup = groups.front() + "-not"}));
  EXPECT_FALSE(Selects({.container = "no group has this name"}));
}

TEST_F(ProcessSelectionTest, AllThatIsSetMustHold) {
  EXPECT_TRUE(Selects({.name = "choose-me", .executable = path_, .uid = ::geteuid()}));
  EXPECT_FALSE(Selects({.name = "choose-me", .executable = "/bin/true"}));
}

TEST_F(ProcessSelectionTest, NothingThatHasEnded) {
  const pid_t pid = program_->pid();
  program_->Signal(SIGKILL);
  EXPECT_FALSE(IsSelected({.name = "choose-me"}, -1));
  EXPECT_NE(program_->Wait(), -1);
  EXPECT_FALSE(IsSelected({.name = "choose-me"}, pid));
}

}  // namespace
}  // namespace probed::daemon

#include "engine/kernel/sweep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/kernel/dynamic_events.h"
#include "engine/kernel/event.h"
#include "engine/kernel/instance.h"
#include "tests/kernel_control/own_tracefs.h"

namespace probed::kernel {
namespace {

using testing::DefinitionsWith;
using testing::InstancesWith;

// No process has a number this large: kernel.pid_max is 2^22 at most.
constexpr pid_t kNobody = 5'000'000;

class Sweep : public ::testing::Test {
 protected:
  void SetUp() override {
    tracefs_ = testing::RealTracefs();
    if (!tracefs_) GTEST_SKIP() << "no tracefs that may be written";
    owner_.start_ticks = static_cast<uint64_t>(getpid());
  }

  // A kernel uprobe on our own code, under `group`.
  void Define(const std::string& group) {
    const Status defined =
        tracefs_->Write("dynamic_events", fmt::format("p:{}/sweep /proc/self/exe:0x1000\n", group));
    ASSERT_TRUE(defined.ok()) << defined.error().ToString();
  }
  bool IsDefined(const std::string& group) {
    return !DefinitionsWith(*tracefs_, group + "/sweep").empty();
  }

  std::optional<Tracefs> tracefs_;
  Owner owner_{.pid = kNobody};
};

// Other daemons that start meanwhile sweep, too: what counts is that it is gone.
TEST_F(Sweep, TakesAwayWhatADeadDaemonHasLeft) {
  const std::string group = GroupPrefix(owner_) + "my";
  const pid_t daemon = fork();
  if (daemon == 0) {
    const auto instance = Instance::Create(*tracefs_, owner_);
    Define(group);
    // Definitions that are enabled are busy until the instance is gone.
    const Status enabled = tracefs_->Write(
        fmt::format("{}/events/{}/sweep/enable", instance->directory(), group), "1");
    if (instance.ok() && enabled.ok()) raise(SIGKILL);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(daemon, &status, 0), daemon);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it could not leave anything";
  SweepAbandoned(*tracefs_);
  EXPECT_TRUE(InstancesWith(*tracefs_, InstanceName(owner_)).empty());
  EXPECT_FALSE(IsDefined(group));
}

TEST_F(Sweep, LeavesThoseWhoAreAlive) {
  const auto instance = Instance::Create(*tracefs_, owner_);
  ASSERT_TRUE(instance.ok()) << instance.error().ToString();
  const std::string group = GroupPrefix(instance->owner()) + "my";
  Define(group);
  const Event event(*tracefs_, instance->directory(), {group, "sweep"}, true);
  SweepAbandoned(*tracefs_);
  EXPECT_FALSE(InstancesWith(*tracefs_, InstanceName(instance->owner())).empty());
  EXPECT_TRUE(IsDefined(group));
}

TEST_F(Sweep, LeavesWhatIsNotOurs) {
  const std::string name = fmt::format("probedlike-{}", getpid());
  const std::string group = fmt::format("probed_like{}", getpid());
  ASSERT_EQ(mkdir(tracefs_->Path("instances/" + name).c_str(), 0700), 0);
  Define(group);
  SweepAbandoned(*tracefs_);
  EXPECT_EQ(InstancesWith(*tracefs_, name).size(), 1u);
  EXPECT_TRUE(IsDefined(group));
  EXPECT_EQ(rmdir(tracefs_->Path("instances/" + name).c_str()), 0);
  EXPECT_TRUE(RemoveDynamicEvent(*tracefs_, group, "sweep").ok());
}

TEST_F(Sweep, InstancesOfOneOwnerHaveTheirOwnNames) {
  const auto first = Instance::Create(*tracefs_, owner_);
  const auto second = Instance::Create(*tracefs_, owner_);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->owner().serial, 0u);
  EXPECT_EQ(second->owner().serial, 1u);
}

}  // namespace
}  // namespace probed::kernel

// Threads, children, exec and death.

#include <sys/wait.h>

#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

std::string Of(const std::string& event, pid_t pid) {
  return event + " " + std::to_string(pid);
}

class FamilyTest : public TracerTest {
 protected:
  // Attached, int3 in place, and on its way.
  void Start(Puppet& puppet) {
    RemoteAddr nop{puppet.ReadNumber("ready", 16)};
    ASSERT_EQ(Attach(puppet.pid(), true), "");
    Insert(puppet.pid(), nop);
    puppet.Send();
  }
};

TEST_F(FamilyTest, EveryShortLivedThreadIsSeen) {
  Puppet puppet("family", {"threads", "500"});
  Start(puppet);
  EXPECT_EQ(puppet.ReadNumber("calls"), 2000u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 2000u);
  EXPECT_EQ(observer_.Count("start "), 2000);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("end ") == 2001; }));
}

TEST_F(FamilyTest, ReleasedForkChildRunsClean) {
  Puppet puppet("family", {"fork", "50"});
  Start(puppet);
  EXPECT_EQ(puppet.ReadNumber("calls"), 0u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.Count("fork "), 50);
  EXPECT_EQ(observer_.hits(), 0u);
}

TEST_F(FamilyTest, FollowedForkChildKeepsItsBreakpoints) {
  observer_.on_fork = ChildChoice::kFollow;
  Puppet puppet("family", {"fork", "50"});
  Start(puppet);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 50u);
  EXPECT_EQ(observer_.hits_of(puppet.pid()), 0u);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("exit ") == 51; }));
}

TEST_F(FamilyTest, VforkChildIsFollowedPastItsExec) {
  Puppet puppet("family", {"vfork", "50"});
  Start(puppet);
  EXPECT_EQ(puppet.ReadNumber("calls"), 50u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 50u);
  EXPECT_EQ(observer_.Count(Of("vfork", puppet.pid())), 50);
  EXPECT_EQ(observer_.Count(Of("child exec", puppet.pid())), 50);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("exit ") == 51; }));
}

TEST_F(FamilyTest, VforkChildIsReleasedAtItsExec) {
  observer_.follow_vfork = false;
  Puppet puppet("family", {"vfork", "20"});
  Start(puppet);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 20u);
  EXPECT_EQ(observer_.Count("child exec"), 0);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("exit ") == 1; }));
}

TEST_F(FamilyTest, PosixSpawnInALoop) {
  Puppet puppet("family", {"spawn", "50"});
  Start(puppet);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.Count("child exec"), 50);
}

TEST_F(FamilyTest, CloneThatSharesMemoryIsTracked) {
  Puppet puppet("family", {"clone_vm", "20"});
  Start(puppet);
  EXPECT_EQ(puppet.ReadNumber("calls"), 20u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_EQ(observer_.hits(), 20u);
  EXPECT_EQ(observer_.hits_of(puppet.pid()), 0u);
}

TEST_F(FamilyTest, ExecIsReported) {
  for (const char* way : {"exec", "exec_from_thread"}) {
    SCOPED_TRACE(way);
    Puppet puppet("family", {way});
    puppet.ReadLine();
    ASSERT_EQ(Attach(puppet.pid()), "");
    puppet.Send();
    EXPECT_NE(puppet.ReadNumber("ready", 16), ~uint64_t{0});
    EXPECT_TRUE(observer_.Saw(Of("exec", puppet.pid())));
    size_t threads = 0;
    tracer_->Call([&] { threads = tracer_->Find(puppet.pid())->threads().size(); });
    EXPECT_EQ(threads, 1u);
    puppet.Send();
    EXPECT_EQ(puppet.ReadNumber("calls"), 12u);
    EXPECT_EQ(puppet.WaitForEnd(), 0);
    EXPECT_TRUE(Eventually([&] { return observer_.Saw(Of("exit", puppet.pid()) + " status 0"); }));
  }
}

TEST_F(FamilyTest, ThreadsOutliveTheirLeader) {
  Puppet puppet("family", {"leader_exits"});
  Start(puppet);
  EXPECT_EQ(puppet.ReadNumber("calls"), 1u);
  EXPECT_EQ(WithOneStopped(puppet.pid(), [](Stopped&) { return Status(); }), "");
  ASSERT_EQ(Detach(puppet.pid()), "");
  EXPECT_EQ(Attach(puppet.pid()), "");
  puppet.Send();
  EXPECT_EQ(puppet.WaitForEnd(), 0);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("exit ") == 1; }));
}

TEST_F(FamilyTest, FatalSignalEndsTheProcess) {
  Puppet puppet("family", {"segfault"});
  Start(puppet);
  std::optional<int> status = puppet.WaitForEnd();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGSEGV);
  EXPECT_TRUE(Eventually([&] { return observer_.Count("exit ") == 1; }));
  tracer_->Call([&] { EXPECT_TRUE(tracer_->processes().empty()); });
}

}  // namespace
}  // namespace probed::tracee

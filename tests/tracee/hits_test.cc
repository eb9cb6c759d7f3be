#include <sys/wait.h>

#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

TEST_F(TracerTest, EveryHitOfManyThreadsIsSeen) {
  Puppet puppet("counter", {"32", "500"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  Insert(puppet.pid(), nop);
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 32u * 500u);
  EXPECT_EQ(observer_.hits(), 32u * 500u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(TracerTest, DetachLeavesTheProgramRunning) {
  Puppet puppet("counter", {"4", "0"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  Insert(puppet.pid(), nop);
  puppet.Send();
  ASSERT_TRUE(Eventually([&] { return observer_.hits() > 1000; }));
  ASSERT_EQ(Detach(puppet.pid()), "");
  uint64_t hits = observer_.hits();
  EXPECT_TRUE(IsUntraced(puppet.pid()));
  puppet.Send();
  EXPECT_GE(puppet.ReadNumber("calls"), hits);
  EXPECT_EQ(observer_.hits(), hits);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

}  // namespace
}  // namespace probed::tracee

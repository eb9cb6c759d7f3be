// A process whose first thread has ended, and with it what /proc/PID shows of its memory.

#include <fmt/format.h>
#include <sys/wait.h>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

TEST_F(EngineTest, AProcessWithoutItsFirstThreadIsProbed) {
  Puppet puppet("leaderless");
  TargetId target = Attach(puppet);
  auto probes = Create(target, {fmt::format("p:t/in {}:work number=%di:u64", puppet.path()),
                                fmt::format("r:t/out {}:work $retval", puppet.path())});
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(puppet.Ask("10"), "10 0");
  EXPECT_EQ(Counters(probes[0].id).hits, 10u);
  EXPECT_EQ(Counters(probes[1].id).recorded, 10u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(puppet.Ask("10"), "20 0");
  puppet.Send("end");
  EXPECT_EQ(puppet.Wait(), 7 << 8);
}

}  // namespace
}  // namespace probed::engine

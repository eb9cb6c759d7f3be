// Jumps where five bytes of whole instructions do not fit: into padding, by way of padding, and
// with a displacement whose last bytes are those of the next function.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

class NarrowTest : public EngineTest {
 protected:
  NarrowTest() : EngineTest(Optimizing()) {}

  std::string Line(const std::string& function) {
    return fmt::format("p:t/{} {}:{} %di:s32", function, puppet_.path(), function);
  }
  void ExpectClean() {
    EXPECT_EQ(Detach(target_).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
    EXPECT_EQ(puppet_.Ask("5"), "0 60");
  }

  Puppet puppet_{"narrow"};
  TargetId target_ = Attach(puppet_);
};

TEST_F(NarrowTest, EveryHitIsCountedAndEverySignalFindsTheProgramsOwnCode) {
  std::vector<ProbeId> probes;
  for (const char* function : {"padded", "entered", "packed"}) {
    probes.push_back(Define(target_, Line(function)));
    EXPECT_TRUE(BecomesOptimized(probes.back())) << function;
  }
  EXPECT_EQ(puppet_.Ask("200000"), "0 2400000");
  for (ProbeId probe : probes)
    EXPECT_EQ(Counters(probe).hits, 200000u);
  ExpectClean();
}

// Its first bytes are a part of the displacement of the jump before it.
TEST_F(NarrowTest, AProbeOnBytesThatAJumpRestsOnMakesItABreakpoint) {
  ProbeId packed = Define(target_, Line("packed"));
  ASSERT_TRUE(BecomesOptimized(packed));
  ProbeId follower = Define(target_, Line("follower"));
  EXPECT_EQ(puppet_.Ask("100"), "0 1200");
  EXPECT_EQ(Counters(packed).hits, 100u);
  EXPECT_EQ(Counters(follower).hits, 100u);
  EXPECT_EQ(engine_->GetProbe(packed)->mechanism, Mechanism::kBoosted);
  ASSERT_TRUE(engine_->DeleteProbes({follower}).ok());
  EXPECT_TRUE(BecomesOptimized(packed));
  EXPECT_EQ(puppet_.Ask("100"), "0 1200");
  EXPECT_EQ(Counters(packed).hits, 200u);
  ExpectClean();
}

TEST_F(NarrowTest, ComeAndGoWhileTheyAreHit) {
  puppet_.Send("300000");
  for (int round = 0; round < 20; ++round) {
    std::vector<ProbeId> probes;
    for (const char* function : {"padded", "entered", "packed"})
      probes.push_back(Define(target_, Line(function)));
    for (ProbeId probe : probes)
      EXPECT_TRUE(BecomesOptimized(probe));
    ASSERT_TRUE(engine_->DeleteProbes(probes).ok());
  }
  EXPECT_EQ(puppet_.ReadLine(), "0 3600000");
  ExpectClean();
}

}  // namespace
}  // namespace probed::engine

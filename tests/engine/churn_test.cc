// Probes come and go, many at a time, under the threads that run through them. PROBED_TEST_ROUNDS
// makes it longer: 79 rounds of 64 places in both tests are 10,000 jumps that come and go.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/lang/payload.h"
#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

class ChurnTest : public EngineTest {
 protected:
  ChurnTest() : EngineTest(Optimizing()) {
    events_ =
        engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  }

  std::vector<ProbeId> DefineAll(TargetId target, const Puppet& puppet, const char* form) {
    std::vector<std::string> lines;
    for (int tens = 0; tens < 8; ++tens) {
      for (int ones = 0; ones < 8; ++ones) {
        auto place = fmt::format("{}:place_{}{}", puppet.path(), tens, ones);
        lines.push_back(fmt::format(fmt::runtime(form), tens, ones, place));
      }
    }
    std::vector<ProbeId> ids;
    for (const auto& probe : Create(target, lines))
      ids.push_back(probe.id);
    return ids;
  }

  bool AllOptimized(TargetId target, size_t count) {
    return Eventually([&] {
      auto sites = engine_->ListSites(target);
      return static_cast<size_t>(std::count_if(sites.begin(), sites.end(), [](const auto& site) {
               return site.mechanism == Mechanism::kOptimized;
             })) == count;
    });
  }

  void ComeAndGo(const char* form) {
    Puppet puppet("crowd");
    TargetId target = Attach(puppet);
    ASSERT_EQ(puppet.Ask("64"), "running");
    for (int round = 0; round < Rounds(1); ++round) {
      auto ids = DefineAll(target, puppet, form);
      ASSERT_EQ(ids.size(), 64u);
      ASSERT_TRUE(AllOptimized(target, ids.size()));
      ASSERT_TRUE(Eventually([&] { return Counters(ids.back()).hits > 0; }));
      ASSERT_TRUE(engine_->DeleteProbes(ids).ok());
    }
    DefineAll(target, puppet, form);
    EXPECT_EQ(Detach(target).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
    EXPECT_EQ(puppet.Ask("end"), "0 wrong");
  }
};

TEST_F(ChurnTest, EntriesUnderSixtyFourThreads) {
  ComeAndGo("p:t/in{}{} {} number=%di:u64");
}

TEST_F(ChurnTest, ReturnsUnderSixtyFourThreads) {
  ComeAndGo("r:t/out{}{} {} number=$arg1 $retval");
}

}  // namespace
}  // namespace probed::engine

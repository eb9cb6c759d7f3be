// Strings in detours, which are searched and copied by code that all of a process share
// (engine/detour/string_routines.h).

#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

class OptimizedStringTest : public EngineTest, public testing::WithParamInterface<const char*> {
 protected:
  OptimizedStringTest() : EngineTest(Optimizing()) {}
};

// Each is told what to run into bad pointers with.
class UnreadableStringTest : public OptimizedStringTest {};
// On a stack that can only be written nobody can look who has called the shared code.
INSTANTIATE_TEST_SUITE_P(Stacks, UnreadableStringTest, testing::Values("recurse", "write-only"));

TEST_P(UnreadableStringTest, AreFaults) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe =
      DefineOptimized(target, fmt::format("p:t/in {}:recurse +0(%di):string", puppet.path()));
  EXPECT_EQ(puppet.Ask(fmt::format("{} 50", GetParam())), "50");
  EXPECT_EQ(Counters(probe).hits, 51u);
  EXPECT_EQ(engine_->GetProbe(probe)->mechanism, Mechanism::kOptimized);
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 51u);
  for (const auto& hit : hits)
    EXPECT_EQ(Text(hit, 0), "(fault)");
  EXPECT_EQ(puppet.Ask("fault"), "0 1 1");  // its own handler
  EXPECT_EQ(puppet.Ask("recurse 5"), "5");
}

// Signals by a timer, then as fast as they are handled.
class StormOfStringsTest : public OptimizedStringTest {};
INSTANTIATE_TEST_SUITE_P(Signals, StormOfStringsTest, testing::Values("storm 1000", "hurry 300"));

// Nearly all the time the program is in a string, at entry and at return.
TEST_P(StormOfStringsTest, SignalsAndChangesFindItThere) {
  events_ = engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId entry =
      DefineOptimized(target, fmt::format("p:t/in {}:spin_work +0(%si):string", puppet.path()));
  ProbeId exit =
      DefineOptimized(target, fmt::format("r:t/out {}:spin_work +0($arg2):string", puppet.path()));
  puppet.Send(GetParam());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(engine_->SetOptimization(false).ok());
    ASSERT_TRUE(engine_->SetOptimization(true).ok());
    ASSERT_TRUE(BecomesOptimized(entry));
  }
  std::string answer = puppet.ReadLine();
  unsigned long spins = 0, strange = 1;
  int enough = 0;
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &enough, &strange), 3) << answer;
  EXPECT_EQ(enough, 1);
  EXPECT_EQ(strange, 0u);
  for (ProbeId probe : {entry, exit}) {
    EXPECT_EQ(Counters(probe).hits, spins);
    EXPECT_EQ(Counters(probe).missed, 0u);
  }
  size_t seen = 0;
  for (auto& item : Drain()) {  // what the queue has no room for is told
    const auto* hit = std::get_if<event::HitRecord>(&item);
    if (hit == nullptr) continue;
    ASSERT_EQ(Text(*hit, 0), std::string(2999, 'x'));
    ++seen;
  }
  EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace probed::engine

#include "engine/tracee/placement.h"

#include <gtest/gtest.h>

namespace probed::tracee {
namespace {

// Stops every `cost` of the way in use, until a way has been chosen.
WaitWay ChosenFor(uint64_t sleep_ns, uint64_t spin_ns, uint64_t follow_ns) {
  WaitTrial trial;
  const uint64_t cost[] = {sleep_ns, spin_ns, follow_ns};
  uint64_t now = 1'000'000'000;
  for (int i = 0; i < 5000 && !trial.settled(); ++i) {
    trial.Count(now);
    now += cost[static_cast<size_t>(trial.way())];
  }
  EXPECT_TRUE(trial.settled());
  return trial.way();
}

TEST(PlacementTest, TheFastestWayIsChosen) {
  EXPECT_EQ(ChosenFor(50'000, 20'000, 30'000), WaitWay::kSpin);
  EXPECT_EQ(ChosenFor(50'000, 20'000, 10'000), WaitWay::kFollow);
  EXPECT_EQ(ChosenFor(10'000, 20'000, 15'000), WaitWay::kSleep);
}

TEST(PlacementTest, SleepIsKeptWhenTheGainIsSmall) {
  EXPECT_EQ(ChosenFor(10'000, 9'500, 9'800), WaitWay::kSleep);
}

TEST(PlacementTest, RareStopsDecideNothing) {
  WaitTrial trial;
  for (uint64_t i = 1; i < 10'000; ++i)
    trial.Count(i * 2'000'000);
  EXPECT_FALSE(trial.settled());
  EXPECT_EQ(trial.way(), WaitWay::kSleep);
}

}  // namespace
}  // namespace probed::tracee

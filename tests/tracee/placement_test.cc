#include "engine/tracee/placement.h"

#include <gtest/gtest.h>

#include <functional>

namespace probed::tracee {
namespace {

// A machine on which a stop costs so many nanoseconds, by the way that is in use.
struct Machine {
  WaitTrial trial;
  uint64_t now = 1'000'000'000;
  bool shares_core = false;
  uint64_t stops = 0;

  using Cost = std::function<uint64_t(WaitWay)>;
  void Stop(const Cost& cost) {
    now += cost(trial.way());
    trial.Count(now);
    if (trial.asks_for_core()) trial.NoteCore(shares_core);
    ++stops;
  }
  void Run(const Cost& cost, int times) {
    for (int i = 0; i < times; ++i)
      Stop(cost);
  }
  WaitWay Choose(const Cost& cost) {
    for (int i = 0; i < 5000 && !trial.settled(); ++i)
      Stop(cost);
    EXPECT_TRUE(trial.settled());
    return trial.way();
  }
};

Machine::Cost Costs(uint64_t sleep_ns, uint64_t spin_ns, uint64_t follow_ns) {
  return [=](WaitWay way) {
    return way == WaitWay::kSleep ? sleep_ns : way == WaitWay::kSpin ? spin_ns : follow_ns;
  };
}

WaitWay ChosenFor(uint64_t sleep_ns, uint64_t spin_ns, uint64_t follow_ns) {
  return Machine().Choose(Costs(sleep_ns, spin_ns, follow_ns));
}

TEST(PlacementTest, TheFastestWayIsChosen) {
  EXPECT_EQ(ChosenFor(50'000, 20'000, 30'000), WaitWay::kSpin);
  EXPECT_EQ(ChosenFor(50'000, 20'000, 10'000), WaitWay::kFollow);
  EXPECT_EQ(ChosenFor(10'000, 20'000, 15'000), WaitWay::kSleep);
}

TEST(PlacementTest, SleepIsKeptWhenTheGainIsSmall) {
  EXPECT_EQ(ChosenFor(10'000, 9'500, 9'800), WaitWay::kSleep);
}

TEST(PlacementTest, AFewHundredStopsAreEnough) {
  Machine machine;
  machine.Choose(Costs(50'000, 20'000, 30'000));
  EXPECT_LE(machine.stops, 300u);
}

TEST(PlacementTest, RareStopsDecideNothing) {
  Machine machine;
  machine.Run(Costs(2'000'000, 2'000'000, 2'000'000), 10'000);
  EXPECT_FALSE(machine.trial.settled());
  EXPECT_EQ(machine.trial.way(), WaitWay::kSleep);
}

TEST(PlacementTest, NothingElseIsTriedWhereTheCoreIsShared) {
  Machine machine;
  machine.shares_core = true;
  machine.Run(
      [](WaitWay way) {
        EXPECT_EQ(way, WaitWay::kSleep);
        return 6'000;
      },
      100'000);
  EXPECT_TRUE(machine.trial.shares_core());
}

TEST(PlacementTest, OneDisturbanceDecidesNothing) {
  Machine machine;
  int spins = 0;
  EXPECT_EQ(machine.Choose([&](WaitWay way) -> uint64_t {
    if (way != WaitWay::kSpin) return 50'000;
    return ++spins == 10 ? 30'000'000 : 20'000;
  }),
            WaitWay::kSpin);
}

TEST(PlacementTest, AStarvingTracerIsNotHeldWhereItIs) {
  Machine machine;
  int follows = 0;
  auto cost = [&](WaitWay way) -> uint64_t {
    if (way != WaitWay::kFollow) return 30'000;
    return ++follows % 10 == 0 ? 3'000'000 : 6'000;
  };
  EXPECT_EQ(machine.Choose(cost), WaitWay::kSleep);
}

TEST(PlacementTest, ALoadThatComesLaterIsNoticed) {
  Machine machine;
  EXPECT_EQ(machine.Choose(Costs(50'000, 20'000, 40'000)), WaitWay::kSpin);
  machine.Run(Costs(50'000, 20'000, 40'000), 600);
  machine.Run(Costs(15'000, 70'000, 40'000), 1'500);
  EXPECT_EQ(machine.trial.way(), WaitWay::kSleep);
}

TEST(PlacementTest, TrialsTakeLittleOfAQuietLife) {
  Machine machine;
  int slow = 0;
  machine.Run(
      [&](WaitWay way) -> uint64_t {
        slow += way != WaitWay::kSpin;
        return way == WaitWay::kSpin ? 20'000 : 50'000;
      },
      500'000);
  EXPECT_LT(slow, 500'000 / 100);
}

}  // namespace
}  // namespace probed::tracee

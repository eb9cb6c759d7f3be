// The counter's times against the kernel's own clocks.

#include "engine/ring/clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace probed::ring {
namespace {

std::string CpuFlags() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("flags")) return line + " ";
  }
  return "";
}

std::string CurrentClockSource() {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string name;
  file >> name;
  return name;
}

TEST(Tsc, IsTrustedOnlyWhereTheKernelSaysConstantAndNonstopOrUsesItItself) {
  const std::string flags = CpuFlags();
  const bool constant = (flags.find(" constant_tsc ") != std::string::npos &&
                         flags.find(" nonstop_tsc ") != std::string::npos) ||
                        CurrentClockSource() == "tsc";
  if (CheckTsc().ok())
    EXPECT_TRUE(constant);
  else
    EXPECT_EQ(CheckTsc().error().reason, "TSC_UNRELIABLE");
}

ClockSample Sample(uint64_t tsc, uint64_t monotonic_ns, int64_t wall_ns) {
  return {tsc, {.monotonic_ns = monotonic_ns, .wall_ns = wall_ns}};
}

TEST(TscClock, IsLinearBetweenSamples) {
  TscClock clock;
  clock.Add(Sample(1000, 500, 10'000));
  clock.Add(Sample(3000, 1500, 11'000));
  clock.Add(Sample(4000, 2500, 12'000));
  EXPECT_EQ(clock.At(1000).monotonic_ns, 500u);
  EXPECT_EQ(clock.At(2000).monotonic_ns, 1000u);
  EXPECT_EQ(clock.At(2000).wall_ns, 10'500);
  EXPECT_EQ(clock.At(3500).monotonic_ns, 2000u);
  EXPECT_EQ(clock.At(600).monotonic_ns, 300u);
  EXPECT_EQ(clock.At(5000).monotonic_ns, 3500u);
}

TEST(TscClock, FollowsASettingOfTheWallClock) {
  TscClock clock;
  clock.Add(Sample(1000, 1000, 5000));
  clock.Add(Sample(2000, 2000, 900'000));
  clock.Add(Sample(3000, 3000, 901'000));
  EXPECT_EQ(clock.At(1500).wall_ns, 5500);
  EXPECT_EQ(clock.At(2500).wall_ns, 900'500);
}

TEST(TscClock, StartsAnewWhenTheCounterDoes) {
  TscClock clock;
  clock.Add(Sample(1'000'000, 1000, 0));
  clock.Add(Sample(2'000'000, 2000, 0));
  clock.Add(Sample(100, 3000, 0));
  clock.Add(Sample(200, 3100, 0));
  EXPECT_EQ(clock.At(150).monotonic_ns, 3050u);
}

TEST(TscClock, NeverGoesBackwardsOverItsWholeHistory) {
  auto clock = std::make_unique<TscClock>();
  for (uint64_t i = 0; i < 3000; ++i)  // rates that change, and more samples than are kept
    clock->Add(Sample(i * 1003 + i % 7, i * 331 + i % 5, 0));
  uint64_t last = 0;
  for (uint64_t tsc = 2000 * 1003; tsc < 2999 * 1003; ++tsc) {
    const uint64_t now = clock->At(tsc).monotonic_ns;
    ASSERT_GE(now, last) << tsc;
    last = now;
  }
}

// The reading of the clock lies between two of the counter; so must its time by the counter.
TEST(TscClock, AgreesWithTheKernelWithinAMicrosecond) {
  if (!CheckTsc().ok()) GTEST_SKIP() << CheckTsc().error().message;
  struct Reading {
    uint64_t before, after;
    Timestamps time;
  };
  auto clock = std::make_unique<TscClock>();
  std::vector<Reading> readings;
  clock->Add(TakeClockSample());
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 100; ++i) {
      const uint64_t before = ReadTsc();
      const Timestamps time = ReadClocks();
      readings.push_back({before, ReadTsc(), time});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    clock->Add(TakeClockSample());
  }
  constexpr uint64_t kTolerance = 1000;
  for (const Reading& reading : readings) {
    const Timestamps early = clock->At(reading.before);
    const Timestamps late = clock->At(reading.after);
    EXPECT_LE(early.monotonic_ns, reading.time.monotonic_ns + kTolerance);
    EXPECT_GE(late.monotonic_ns + kTolerance, reading.time.monotonic_ns);
    EXPECT_LE(early.wall_ns, reading.time.wall_ns + static_cast<int64_t>(kTolerance));
    EXPECT_GE(late.wall_ns + static_cast<int64_t>(kTolerance), reading.time.wall_ns);
  }
}

}  // namespace
}  // namespace probed::ring

#pragma once
// The time-stamp counter as both clocks of an event. Records carry the counter alone; samples of
// counter and clocks, taken while records are read, say what it meant. One thread.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"

namespace probed::ring {

uint64_t ReadTsc();  // not reordered with what stands before it

// TSC_UNRELIABLE: the counter may stop, change its rate, or differ between CPUs on this machine.
Status CheckTsc();

// Seconds of CLOCK_MONOTONIC for each tick of the counter, times 2^64. Measured at the first call,
// which takes part of a second.
uint64_t SecondsPerTick();

struct ClockSample {
  uint64_t tsc = 0;
  Timestamps time;
};

// The tightest of several readings; off by the time that reading a clock takes (some 10 ns).
ClockSample TakeClockSample();

class TscClock {
 public:
  void Add(const ClockSample& sample);

  // Exact between samples (the kernel's own clock is piecewise linear); never backwards between
  // the oldest and the newest one kept. Outside of them the nearest rate is continued, which is an
  // estimate that the next sample may correct. One sample at least must have been added.
  Timestamps At(uint64_t tsc) const;

 private:
  struct Node {
    ClockSample sample;
    double ns_per_tick = 0;  // up to the next node; of the newest: the rate so far
  };
  // More than a second of them at the highest polling rate: a thread that is preempted while it
  // writes its record keeps that one and all behind it for a while.
  static constexpr size_t kNodes = 1024;

  const Node& Get(uint64_t number) const { return nodes_[number % kNodes]; }
  uint64_t FindNode(uint64_t tsc) const;

  std::array<Node, kNodes> nodes_{};
  uint64_t first_ = 0;  // numbers of the nodes kept: [first_, end_)
  uint64_t end_ = 0;
};

}  // namespace probed::ring

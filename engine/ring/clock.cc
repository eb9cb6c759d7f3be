#include "engine/ring/clock.h"

#include <cpuid.h>
#include <x86intrin.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <sstream>
#include <string>

#include "base/file.h"

namespace probed::ring {
namespace {

constexpr unsigned kPowerLeaf = 0x80000007;
constexpr unsigned kInvariantTsc = 1u << 8;  // EDX: constant_tsc and nonstop_tsc of /proc/cpuinfo
constexpr char kClockSources[] = "/sys/devices/system/clocksource/clocksource0/";

bool NamesTsc(const std::string& sources) {
  std::istringstream words(sources);
  return std::find(std::istream_iterator<std::string>(words), {}, "tsc") !=
         std::istream_iterator<std::string>();
}

// The kernel compares the counters of all CPUs and stops offering the TSC when they differ. Few
// virtual machines show the flag; there, what counts is whether the kernel keeps its own time with
// the TSC, which it watches (kernel/time/clocksource.c).
bool IsConstant() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool flag =
      __get_cpuid(kPowerLeaf, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0;
  const auto sources = ReadFile(std::string(kClockSources) +
                                (flag ? "available_clocksource" : "current_clocksource"));
  return sources.ok() ? NamesTsc(*sources) : flag;  // no sysfs here: the CPU's own word must do
}

int64_t Since(uint64_t tsc, uint64_t begin) {
  return static_cast<int64_t>(tsc - begin);
}

}  // namespace

uint64_t ReadTsc() {
  _mm_lfence();  // rdtscp would wait as well, but not every processor has it
  return __rdtsc();
}

Status CheckTsc() {
  if (IsConstant()) return {};
  return Error{ErrorCode::kFailedPrecondition,
               "TSC_UNRELIABLE",
               "the time-stamp counter of this machine is not constant or not the same on all CPUs",
               "",
               {}};
}

uint64_t SecondsPerTick() {
  static const uint64_t rate = [] {
    constexpr std::chrono::nanoseconds kSpan{10'000'000};  // samples are exact to some 10 ns
    const ClockSample begin = TakeClockSample();
    ClockSample end = begin;
    while (end.time.monotonic_ns - begin.time.monotonic_ns < kSpan.count())
      end = TakeClockSample();
    const auto ns = static_cast<double>(end.time.monotonic_ns - begin.time.monotonic_ns);
    return static_cast<uint64_t>(
        std::ldexp(ns / 1e9 / static_cast<double>(end.tsc - begin.tsc), 64));
  }();
  return rate;
}

ClockSample TakeClockSample() {
  constexpr int kReadings = 5;
  ClockSample best;
  uint64_t best_ticks = ~uint64_t{0};
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = ReadTsc();
    const uint64_t monotonic = MonotonicNow();
    const uint64_t after = ReadTsc();
    const Timestamps wall = ReadClocks();
    if (after - before >= best_ticks) continue;
    best_ticks = after - before;
    best.tsc = before + best_ticks / 2;
    best.time = {.monotonic_ns = monotonic,
                 .wall_ns = wall.wall_ns - static_cast<int64_t>(wall.monotonic_ns - monotonic)};
  }
  return best;
}

void TscClock::Add(const ClockSample& sample) {
  if (end_ == first_) {
    nodes_[end_++ % kNodes] = {sample, 0};
    return;
  }
  Node& last = nodes_[(end_ - 1) % kNodes];
  const int64_t ticks = Since(sample.tsc, last.sample.tsc);
  if (ticks < 0) {  // restarted, as it may by a suspend to memory
    first_ = end_;
    return Add(sample);
  }
  if (ticks == 0 || sample.time.monotonic_ns <= last.sample.time.monotonic_ns) return;
  last.ns_per_tick = static_cast<double>(sample.time.monotonic_ns - last.sample.time.monotonic_ns) /
                     static_cast<double>(ticks);
  if (end_ - first_ == kNodes) ++first_;
  nodes_[end_++ % kNodes] = {sample, last.ns_per_tick};
}

// The last node at or before `tsc`, or the first one. Most records are of the last interval.
uint64_t TscClock::FindNode(uint64_t tsc) const {
  uint64_t low = first_;
  uint64_t high = end_;
  if (end_ - first_ > 2 && Since(tsc, Get(end_ - 2).sample.tsc) >= 0) low = end_ - 2;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (Since(tsc, Get(middle).sample.tsc) >= 0 ? low : high) = middle;
  }
  return low;
}

Timestamps TscClock::At(uint64_t tsc) const {
  const uint64_t number = FindNode(tsc);
  const Node& node = Get(number);
  int64_t ns =
      static_cast<int64_t>(static_cast<double>(Since(tsc, node.sample.tsc)) * node.ns_per_tick);
  if (number + 1 < end_) {  // rounding must not lead past the next node
    const auto& next = Get(number + 1).sample.time;
    ns = std::min(ns, static_cast<int64_t>(next.monotonic_ns - node.sample.time.monotonic_ns));
  }
  return {.monotonic_ns = node.sample.time.monotonic_ns + static_cast<uint64_t>(ns),
          .wall_ns = node.sample.time.wall_ns + ns};
}

}  // namespace probed::ring

// The draining thread beside threads that record, by rings and by traps.

#include "engine/event/drainer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "tests/event/ring_puppet.h"

namespace probed::event {
namespace {

using std::chrono::milliseconds;

size_t ThreadCount() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// A program's thread: it is moved between CPUs at any time, the one between its stamp and its
// record included, and now and then hits a probe that traps.
void Hit(RingPuppet& puppet, Drainer& drainer, SourceId source, int tid, uint64_t count) {
  std::minstd_rand random(static_cast<unsigned>(tid));
  for (uint64_t number = 0; number < count; ++number) {
    const uint64_t tsc = ring::ReadTsc();
    if (random() % 16 == 0) {
      drainer.Publish(source, tsc, RingPuppet::Trap(tid, number));
      continue;
    }
    const auto cpu = static_cast<uint32_t>(random() % 4);
    if (random() % 64 == 0) std::this_thread::yield();
    auto slot = puppet.producer().Reserve(cpu, sizeof(number));
    ASSERT_TRUE(slot);
    if (random() % 64 == 0) std::this_thread::yield();
    puppet.producer().Fill(*slot, RingPuppet::ToHit(tid, tsc, number));
    puppet.producer().Commit(*slot);
  }
}

TEST(Drainer, TheOrderOfEachThreadIsExactHoweverItIsMoved) {
  constexpr int kThreads = 8;
  constexpr uint64_t kCount = 30'000;
  Hub hub;
  auto events = hub.Subscribe({.max_queued_bytes = 1u << 30, .wants_hit = {}, .wants_notice = {}});
  Drainer drainer(hub);
  auto puppet =
      std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 4, .ring_bytes = 16 << 20});
  const SourceId source = drainer.Add(puppet);
  std::vector<std::jthread> threads;
  for (int tid = 1; tid <= kThreads; ++tid)
    threads.emplace_back([&, tid] { Hit(*puppet, drainer, source, tid, kCount); });
  for (std::jthread& thread : threads)
    thread.join();
  drainer.Flush();
  std::map<int, uint64_t> next;
  std::map<int, uint64_t> time;
  uint64_t total = 0, out_of_order = 0, backwards = 0;
  for (auto items = events->Next(1000, milliseconds(0)); !items.empty();
       items = events->Next(1000, milliseconds(0))) {
    for (const Item& item : items) {
      const auto& hit = std::get<HitRecord>(item);
      ++total;
      out_of_order += NumberOf(hit) != next[hit.tid]++;
      backwards += hit.monotonic_ns < time[hit.tid];
      time[hit.tid] = hit.monotonic_ns;
    }
  }
  EXPECT_EQ(total, kThreads * kCount) << "Flush leaves nothing behind";
  EXPECT_EQ(out_of_order, 0u);
  EXPECT_EQ(backwards, 0u);
}

TEST(Drainer, FlushPublishesWhatIsRecorded) {
  Hub hub;
  auto events = hub.Subscribe({});
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  const SourceId source = drainer.Add(puppet);
  for (uint64_t i = 0; i < 50; ++i) {
    puppet->Record(0, 1, ring::ReadTsc(), 2 * i);
    drainer.Publish(source, ring::ReadTsc(), RingPuppet::Trap(1, 2 * i + 1));
    drainer.Flush();
    EXPECT_EQ(hub.published(), 2 * i + 2);
  }
}

// Nobody waits for the reading of a full ring, or of one that is filled for ever, to count it.
TEST(Drainer, CountsWhatThreadsThatNeverStopHaveRecorded) {
  constexpr uint64_t kAtLeast = 200'000;
  Hub hub;
  auto events = hub.Subscribe({.max_queued_bytes = 1 << 20, .wants_hit = {}, .wants_notice = {}});
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 2, .ring_bytes = 1 << 20});
  const SourceId source = drainer.Add(puppet);
  std::atomic<uint64_t> recorded = 0;
  std::vector<std::jthread> threads;
  for (uint32_t cpu = 0; cpu < 2; ++cpu) {
    threads.emplace_back([&, cpu](const std::stop_token& stop) {
      while (!stop.stop_requested())
        recorded += puppet->Record(cpu, static_cast<int>(cpu) + 1, ring::ReadTsc(), 0);
    });
  }
  while (recorded < kAtLeast) {
    const uint64_t before = recorded, published = hub.published();
    drainer.Count();
    EXPECT_GE(puppet->counted, std::max(before, published));
  }
  drainer.Flush();  // comes to an end
  threads.clear();
  drainer.Remove(source);
  EXPECT_EQ(puppet->counted, recorded);
  EXPECT_EQ(hub.published(), recorded);
}

TEST(Drainer, CountsAndGivesBackWhatNobodyReads) {
  Hub hub;
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  const SourceId source = drainer.Add(puppet);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(puppet->Record(0, 1, ring::ReadTsc(), i));
    if (i % 50 == 0) drainer.Flush();
  }
  drainer.Remove(source);
  EXPECT_EQ(puppet->counted, 1000u);
  EXPECT_EQ(hub.published(), 0u);
}

TEST(Drainer, HasAThreadOnlyWhileThereAreRings) {
  Hub hub;
  Drainer drainer(hub);
  std::thread([] {}).join();  // with the first one comes a sanitizer's own
  const size_t before = ThreadCount();
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  const SourceId first = drainer.Add(puppet);
  EXPECT_EQ(ThreadCount(), before + 1);
  const SourceId second = drainer.Add(puppet);
  drainer.Remove(first);
  EXPECT_EQ(ThreadCount(), before + 1);
  drainer.Remove(second);
  EXPECT_EQ(ThreadCount(), before);
}

TEST(Drainer, RemovePublishesWhatIsLeft) {
  Hub hub;
  auto events = hub.Subscribe({});
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  const SourceId source = drainer.Add(puppet);
  puppet->Record(0, 1, ring::ReadTsc(), 0);
  puppet->producer().Reserve(0, 8);
  puppet->Record(0, 1, ring::ReadTsc(), 1);
  drainer.Publish(source, ring::ReadTsc(), RingPuppet::Trap(1, 2));
  drainer.Remove(source);
  EXPECT_EQ(hub.published(), 3u);
}

struct Told {
  uint64_t hits = 0, lost = 0;
};

Told AllOf(Subscription& events) {
  Told told;
  for (auto items = events.Next(1000, milliseconds(0)); !items.empty();
       items = events.Next(1000, milliseconds(0))) {
    for (const Item& item : items) {
      if (const auto* loss = std::get_if<LossNotice>(&item)) told.lost += loss->lost;
      told.hits += std::holds_alternative<HitRecord>(item);
    }
  }
  return told;
}

// A thread that is faster than the reader: each of its hits is published, or told as lost.
TEST(Drainer, WhatAFullRingRefusesIsToldInTheStream) {
  constexpr uint64_t kCount = 100'000;
  Hub hub;
  auto events = hub.Subscribe({});
  SubscribeOptions others;
  others.wants_hit = [](ProbeId probe, TargetId) { return probe != 1; };
  auto another = hub.Subscribe(others);
  SubscribeOptions of_target;
  of_target.wants_hit = [](ProbeId, TargetId target) { return target.pid == 1; };
  auto its = hub.Subscribe(of_target);
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  const SourceId source = drainer.Add(puppet);
  for (uint64_t i = 0; i < kCount; ++i)
    puppet->refused += !puppet->Record(0, 1, ring::ReadTsc(), i);
  drainer.Flush();
  const Told flushed = AllOf(*events);
  EXPECT_EQ(flushed.hits + flushed.lost, kCount) << "Flush leaves nothing untold";
  EXPECT_EQ(flushed.lost, puppet->refused);
  EXPECT_GT(flushed.lost, 0u);
  puppet->refused += 7;
  drainer.Remove(source);
  EXPECT_EQ(AllOf(*events).lost, 7u) << "nor does Remove";
  EXPECT_EQ(another->lost(), 0u);
  EXPECT_EQ(its->lost(), puppet->refused);
}

// Of a source that has its own counters: as the records' probe's, once.
TEST(Drainer, WhatIsGivenUpIsItsProbesLoss) {
  constexpr uint64_t kCount = 1000;
  Hub hub;
  auto events = hub.Subscribe({});
  Merger merger(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 2, .ring_bytes = 1 << 20});
  puppet->counts_losses = true;
  merger.Add(1, puppet, ring::TakeClockSample());
  for (uint64_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(puppet->Record(i % 2, 1, ring::ReadTsc(), i));
  merger.Drop(1);
  merger.Remove(1, ring::TakeClockSample());
  const Told told = AllOf(*events);
  EXPECT_EQ(told.hits, 0u);
  EXPECT_EQ(told.lost, kCount);
  EXPECT_EQ(puppet->given_up, kCount);
  EXPECT_EQ(puppet->counted, kCount);
}

TEST(Drainer, WhatIsDroppedIsCountedAndTold) {
  constexpr uint64_t kCount = 1000;
  Hub hub;
  auto events = hub.Subscribe({});
  Merger merger(hub);  // without a thread that would read it first
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 2, .ring_bytes = 1 << 20});
  merger.Add(1, puppet, ring::TakeClockSample());
  for (uint64_t i = 0; i < kCount; ++i)
    ASSERT_TRUE(puppet->Record(i % 2, 1, ring::ReadTsc(), i));
  merger.Drop(1);
  merger.Round(ring::TakeClockSample());
  uint64_t hits = 0, lost = 0;
  for (const Item& item : events->Next(2 * kCount, milliseconds(0))) {
    if (const auto* loss = std::get_if<LossNotice>(&item)) lost += loss->lost;
    hits += std::holds_alternative<HitRecord>(item);
  }
  EXPECT_EQ(hits, 0u);
  EXPECT_EQ(lost, kCount);
  EXPECT_EQ(puppet->counted, kCount);
}

// A program without rings, whose hits come by traps alone, beside the kernel's ring.
TEST(Drainer, TrapsWithoutARingKeepTheirPlaceBesideASourceThatConcernsAll) {
  Hub hub;
  auto events = hub.Subscribe({});
  Drainer drainer(hub);
  auto kernel = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 65536});
  kernel->concerns_all = true;
  const SourceId source = drainer.Add(kernel);
  constexpr uint64_t kHits = 1000;
  for (uint64_t number = 0; number < kHits; number += 2) {
    ASSERT_TRUE(kernel->Record(0, 1, ring::ReadTsc(), number));
    drainer.Publish(kNoSource, ring::ReadTsc(), RingPuppet::Trap(1, number + 1));
  }
  drainer.Remove(source);
  drainer.Publish(kNoSource, ring::ReadTsc(), RingPuppet::Trap(1, kHits));
  const auto items = events->Next(2 * kHits, milliseconds(0));
  ASSERT_EQ(items.size(), kHits + 1);
  for (uint64_t number = 0; number <= kHits; ++number)
    ASSERT_EQ(NumberOf(std::get<HitRecord>(items[number])), number);
}

// No test of time but of wake-ups: the thread's voluntary context switches are those.
TEST(Drainer, LooksLessOftenWhenThereIsNothing) {
  Hub hub;
  Drainer drainer(hub);
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 4096});
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const SourceId source = drainer.Add(puppet);
  std::this_thread::sleep_for(milliseconds(640));
  drainer.Remove(source);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_nvcsw - before.ru_nvcsw, 40);
}

}  // namespace
}  // namespace probed::event

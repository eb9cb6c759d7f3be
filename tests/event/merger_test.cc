// The order of what comes from rings and by traps, by a clock that the test sets.

#include "engine/event/merger.h"

#include <gtest/gtest.h>

#include <chrono>

#include "tests/event/ring_puppet.h"

namespace probed::event {
namespace {

constexpr uint64_t kNsPerTick = 10;

ring::ClockSample At(uint64_t tsc) {
  return {tsc, {.monotonic_ns = tsc * kNsPerTick, .wall_ns = static_cast<int64_t>(tsc) * 10 + 5}};
}

class MergerTest : public testing::Test {
 protected:
  MergerTest() {
    merger_.Add(1, puppet_, At(1));
    merger_.Add(2, other_, At(2));
  }

  void Trap(SourceId source, int tid, uint64_t tsc, uint64_t number) {
    PackedHits hits;
    hits.Append(RingPuppet::Trap(tid, number));
    merger_.Hold(source, tsc, hits.front());
  }
  std::vector<uint64_t> Numbers() {
    std::vector<uint64_t> numbers;
    for (const Item& item : events_->Next(1000, std::chrono::milliseconds(0)))
      numbers.push_back(NumberOf(std::get<HitRecord>(item)));
    return numbers;
  }
  std::vector<uint64_t> Round(uint64_t tsc) {
    merger_.Round(At(tsc));
    return Numbers();
  }

  using Expected = std::vector<uint64_t>;

  Hub hub_;
  std::unique_ptr<Subscription> events_ = hub_.Subscribe({});
  std::shared_ptr<RingPuppet> puppet_ =
      std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 2, .ring_bytes = 64 << 10});
  std::shared_ptr<RingPuppet> other_ =
      std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 1, .ring_bytes = 64 << 10});
  Merger merger_{hub_};
};

TEST_F(MergerTest, OrdersRingsAndTrapsByTime) {
  puppet_->Record(0, 1, 100, 0);
  puppet_->Record(0, 1, 400, 3);
  puppet_->Record(1, 1, 200, 1);
  puppet_->Record(1, 1, 500, 4);
  other_->Record(0, 7, 600, 5);
  Trap(1, 1, 300, 2);
  EXPECT_EQ(Round(1000), (Expected{0, 1, 2, 3, 4, 5}));
}

TEST_F(MergerTest, GivesTheTimeOfTheCounter) {
  puppet_->Record(0, 1, 123, 0);
  Trap(1, 1, 456, 1);
  merger_.Round(At(1000));
  const auto items = events_->Next(10, std::chrono::milliseconds(0));
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(std::get<HitRecord>(items[0]).monotonic_ns, 1230u);
  EXPECT_EQ(std::get<HitRecord>(items[1]).monotonic_ns, 4560u);
  EXPECT_EQ(std::get<HitRecord>(items[1]).wall_ns, 4565);
}

TEST_F(MergerTest, WhatIsStampedLaterThanTheRoundWaits) {
  puppet_->Record(0, 1, 100, 0);
  puppet_->Record(0, 1, 300, 2);
  EXPECT_EQ(Round(200), (Expected{0}));
  Trap(1, 1, 250, 1);
  EXPECT_EQ(Round(400), (Expected{1, 2}));
}

// Thread 2 recorded number 1 on CPU 0, behind a record that thread 1 is still writing, and number 2
// on CPU 1.
TEST_F(MergerTest, AThreadInTheMiddleOfARecordHoldsItsProcessBack) {
  auto held = puppet_->producer().Reserve(0, 8);
  puppet_->Record(0, 2, 110, 1);
  puppet_->Record(1, 2, 120, 2);
  other_->Record(0, 7, 130, 7);
  EXPECT_EQ(Round(200), (Expected{7})) << "another process goes on";
  const uint64_t number = 0;
  puppet_->producer().Fill(*held, RingPuppet::ToHit(1, 100, number));
  puppet_->producer().Commit(*held);
  EXPECT_EQ(Round(300), (Expected{0, 1, 2}));
}

// The kernel's records are of every process's threads: neither side may run ahead of the other.
TEST_F(MergerTest, WhatConcernsAllAndTheRestWaitForEachOther) {
  other_->concerns_all = true;
  auto of_a_process = puppet_->producer().Reserve(0, 8);
  other_->Record(0, 7, 130, 1);
  EXPECT_EQ(Round(200), Expected{});
  const uint64_t number = 0;
  puppet_->producer().Fill(*of_a_process, RingPuppet::ToHit(7, 100, number));
  puppet_->producer().Commit(*of_a_process);
  EXPECT_EQ(Round(300), (Expected{0, 1}));

  auto of_the_kernel = other_->producer().Reserve(0, 8);
  puppet_->Record(0, 7, 330, 3);
  EXPECT_EQ(Round(400), Expected{});
  const uint64_t earlier = 2;
  other_->producer().Fill(*of_the_kernel, RingPuppet::ToHit(7, 310, earlier));
  other_->producer().Commit(*of_the_kernel);
  EXPECT_EQ(Round(500), (Expected{2, 3}));
}

TEST_F(MergerTest, TellsUpToWhereNothingIsLeftToRead) {
  Round(200);
  EXPECT_EQ(puppet_->read_up_to, 200u);
  auto held = puppet_->producer().Reserve(0, 8);
  puppet_->Record(0, 2, 220, 1);
  Round(300);
  EXPECT_EQ(puppet_->read_up_to, 200u);
  const uint64_t number = 0;
  puppet_->producer().Fill(*held, RingPuppet::ToHit(1, 210, number));
  puppet_->producer().Commit(*held);
  Round(400);
  EXPECT_EQ(puppet_->read_up_to, 400u);
}

TEST_F(MergerTest, ButNotLongerThanItIsPatient) {
  puppet_->producer().Reserve(0, 8);
  puppet_->Record(1, 2, 120, 2);
  EXPECT_EQ(Round(200), Expected{});
  const uint64_t second = 1'000'000'000 / kNsPerTick;
  EXPECT_EQ(Round(200 + second / 2), Expected{});
  EXPECT_EQ(Round(200 + 2 * second), (Expected{2}));
}

// Thread 1 went from CPU 0 to CPU 1, and nobody read for long.
TEST_F(MergerTest, KeepsTheOrderOfWhatHasPiledUp) {
  const uint64_t second = 1'000'000'000 / kNsPerTick;
  constexpr uint64_t kMany = 100'000;  // more than a round reads
  auto puppet = std::make_shared<RingPuppet>(ring::Geometry{.cpu_count = 2, .ring_bytes = 8 << 20});
  merger_.Add(3, puppet, At(10));
  for (uint64_t number = 0; number < kMany; ++number)
    ASSERT_TRUE(puppet->Record(0, 1, 20 + number, number));
  ASSERT_TRUE(puppet->Record(1, 1, 20 + kMany, kMany));
  uint64_t next = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    merger_.Round(At((5 + round) * second));
    for (std::vector<uint64_t> numbers = Numbers(); !numbers.empty(); numbers = Numbers()) {
      for (const uint64_t number : numbers)
        ASSERT_EQ(number, next++);
    }
  }
  EXPECT_EQ(next, kMany + 1);
}

// The record in front is old because nobody read it, not because its thread stands still.
TEST_F(MergerTest, IsPatientFromWhenItLooks) {
  const uint64_t second = 1'000'000'000 / kNsPerTick;
  puppet_->Record(0, 1, 100, 0);
  auto held = puppet_->producer().Reserve(0, 8);
  puppet_->Record(1, 2, 120, 2);
  EXPECT_EQ(Round(5 * second), (Expected{0}));
  const uint64_t number = 1;
  puppet_->producer().Fill(*held, RingPuppet::ToHit(2, 110, number));
  puppet_->producer().Commit(*held);
  EXPECT_EQ(Round(6 * second), (Expected{1, 2}));
}

TEST_F(MergerTest, AnUnreadRestHoldsBackOnlyWhatCouldBeLaterThanIt) {
  puppet_->Record(0, 1, 50, 0);
  EXPECT_EQ(Round(60), (Expected{0}));
  puppet_->Record(0, 1, 100, 1);
  puppet_->producer().Reserve(0, 8);
  puppet_->Record(1, 2, 90, 2);
  puppet_->Record(1, 2, 110, 3);
  EXPECT_EQ(Round(200), (Expected{2, 1}));
}

TEST_F(MergerTest, StampsThatCannotBeAreNotHeldForEver) {
  puppet_->Record(0, 1, ~uint64_t{0}, 1);
  puppet_->Record(0, 1, 0, 0);
  EXPECT_EQ(Round(100), (Expected{0}));
  EXPECT_EQ(Round(200), (Expected{1}));
}

TEST_F(MergerTest, RecordsOfUnknownProbesAreDropped) {
  const uint64_t number = 9;
  auto hit = RingPuppet::ToHit(1, 50, number);
  hit.probe = 77;
  puppet_->producer().Record(0, hit);
  puppet_->Record(0, 1, 60, 0);
  EXPECT_EQ(Round(100), (Expected{0}));
}

TEST_F(MergerTest, ACorruptRingEndsThatProcessOnly) {
  puppet_->Record(0, 1, 50, 0);
  puppet_->producer().head(1) = 7;
  other_->Record(0, 7, 60, 1);
  EXPECT_EQ(Round(100), (Expected{0, 1}));
  EXPECT_EQ(puppet_->corrupt, "RING_CORRUPT");
  puppet_->Record(0, 1, 110, 2);
  other_->Record(0, 7, 120, 3);
  Trap(1, 1, 130, 4);
  EXPECT_EQ(Round(200), (Expected{3, 4})) << "traps of it are still told";
}

TEST_F(MergerTest, RemovingASourcePublishesAllOfIt) {
  puppet_->Record(0, 1, 50, 0);
  puppet_->producer().Reserve(0, 24);
  puppet_->Record(0, 1, 70, 1);
  puppet_->Record(1, 1, 500, 2);
  merger_.Remove(1, At(100));
  EXPECT_EQ(Numbers(), (Expected{0, 1, 2}));
  Trap(1, 1, 110, 3);
  EXPECT_EQ(Round(200), Expected{});
}

}  // namespace
}  // namespace probed::event

// The reader against a producer that does by hand what a detour does, and against rings that no
// detour can have written.

#include "engine/ring/reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "tests/ring/producer.h"

namespace probed::ring {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

struct Ring {
  explicit Ring(Geometry geometry)
      : control(geometry.control_bytes()),
        ring(geometry.ring_area_bytes()),
        producer(geometry, control.bytes(), ring.bytes()),
        reader(geometry, control.bytes(), ring.bytes()) {}

  bool Record(uint32_t cpu, uint32_t probe, uint64_t thread, std::span<const std::byte> payload) {
    return producer.Record(cpu, {.probe = probe, .thread = thread, .tsc = 1, .payload = payload});
  }

  SharedMapping control;
  SharedMapping ring;
  Producer producer;
  Reader reader;
};

struct Taken {
  uint32_t cpu, probe;
  uint64_t thread;
  std::vector<std::byte> payload;
};

Reader::Sink Into(std::vector<Taken>& out) {
  return [&out](const RawRecord& record) {
    out.push_back({record.cpu, record.probe, record.thread,
                   std::vector(record.payload.begin(), record.payload.end())});
  };
}

std::vector<std::byte> Bytes(size_t size, uint8_t value) {
  return std::vector(size, std::byte{value});
}

std::string ReasonOf(const Status& status) {
  return status.ok() ? "" : status.error().reason;
}

TEST(Reader, HandsOverWhatWasRecordedAndNoMore) {
  Ring ring({.cpu_count = 2, .ring_bytes = 4096});
  ring.Record(1, 7, 100, Bytes(13, 1));
  ring.Record(0, 8, 101, Bytes(0, 0));
  ring.Record(1, 9, 102, Bytes(24, 2));
  EXPECT_EQ(ring.reader.backlog(), 48u + 32u + 56u);
  std::vector<Taken> taken;
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].probe, 8u);
  EXPECT_EQ(taken[1].payload, Bytes(13, 1));
  EXPECT_EQ(taken[2].payload, Bytes(24, 2));
  EXPECT_EQ(taken[2].thread, 102u);
  EXPECT_EQ(ring.reader.backlog(), 0u);
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  EXPECT_EQ(taken.size(), 3u);
}

TEST(Reader, WaitsForTheOldestUncommittedRecord) {
  Ring ring({.cpu_count = 1, .ring_bytes = 4096});
  ring.Record(0, 1, 0, {});
  auto held = ring.producer.Reserve(0, 8);
  ring.Record(0, 3, 0, {});
  std::vector<Taken> taken;
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  EXPECT_EQ(taken.size(), 1u);
  const auto payload = Bytes(8, 1);
  ring.producer.Fill(*held, {.probe = 2, .thread = 0, .tsc = 1, .payload = payload});
  ring.producer.Commit(*held);
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[1].probe, 2u);
}

TEST(Reader, SkipsAbandonedRecords) {
  Ring ring({.cpu_count = 1, .ring_bytes = 4096});
  auto held = ring.producer.Reserve(0, 100);
  held->header->probe = kAbandonedRecord;
  ring.producer.Commit(*held);
  ring.Record(0, 3, 0, {});
  std::vector<Taken> taken;
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].probe, 3u);
}

TEST(Reader, HandsOverWhatStandsBehindHolesAtTheEnd) {
  Ring ring({.cpu_count = 1, .ring_bytes = 4096});
  for (int lap = 0; lap < 3; ++lap) {  // so that a hole lies where old records were
    ring.producer.Reserve(0, 500);
    ring.Record(0, 1, 0, Bytes(40, 0xff));
    ring.producer.Reserve(0, 0);
    ring.producer.Reserve(0, 700);
    ring.Record(0, 2, 0, Bytes(800, 0x11));
    ring.producer.Reserve(0, 8);
    std::vector<Taken> taken;
    ASSERT_TRUE(ring.reader.DrainRest(Into(taken)).ok());
    ASSERT_EQ(taken.size(), 2u);
    EXPECT_EQ(taken[0].payload, Bytes(40, 0xff));
    EXPECT_EQ(taken[1].payload, Bytes(800, 0x11));
    EXPECT_EQ(ring.reader.backlog(), 0u);
  }
}

TEST(Reader, ScanNamesWhatDrainHasNotYetReadAndNothingTwice) {
  Ring ring({.cpu_count = 2, .ring_bytes = 4096});
  std::vector<uint32_t> named;
  auto name = [&](uint32_t probe) { named.push_back(probe); };
  ring.Record(0, 1, 0, Bytes(8, 1));
  ring.Record(1, 2, 0, {});
  auto held = ring.producer.Reserve(1, 8);
  ring.Record(1, 4, 0, {});
  ASSERT_TRUE(ring.reader.Scan(name).ok());
  ASSERT_TRUE(ring.reader.Scan(name).ok());
  EXPECT_EQ(named, (std::vector<uint32_t>{1, 2}));
  ring.Record(0, 5, 0, {});
  std::vector<bool> scanned;
  auto note = [&](const RawRecord& record) { scanned.push_back(record.scanned); };
  ASSERT_TRUE(ring.reader.Drain(kAll, note).ok());
  EXPECT_EQ(scanned, (std::vector<bool>{true, false, true})) << "1 5 on CPU 0, 2 on CPU 1";
  held->header->probe = kAbandonedRecord;
  ring.producer.Commit(*held);
  ASSERT_TRUE(ring.reader.Scan(name).ok());
  EXPECT_EQ(named, (std::vector<uint32_t>{1, 2, 4}));
}

TEST(Reader, StopsAtTheAskedSize) {
  Ring ring({.cpu_count = 1, .ring_bytes = 4096});
  for (uint32_t i = 0; i < 10; ++i)
    ring.Record(0, i, 0, {});
  std::vector<Taken> taken;
  ASSERT_TRUE(ring.reader.Drain(1, Into(taken)).ok());
  EXPECT_EQ(taken.size(), 1u);
  ASSERT_TRUE(ring.reader.Drain(64, Into(taken)).ok());
  EXPECT_EQ(taken.size(), 3u);
}

// A program that can choose what a string argument holds must not be able to forge the record
// that stands at the string's place one lap later.
TEST(Reader, IsNotFooledByOldPayloads) {
  Ring ring({.cpu_count = 1, .ring_bytes = 4096});
  std::vector<std::byte> forged(4096 - 32);
  for (uint64_t offset = 32; offset < 4096; offset += 8) {
    const uint64_t word = CommitWord(4096 + offset, 64);
    std::memcpy(forged.data() + offset - 32, &word, sizeof(word));
  }
  ASSERT_TRUE(ring.Record(0, 1, 0, forged));
  std::vector<Taken> taken;
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  ring.Record(0, 2, 0, {});
  ASSERT_TRUE(ring.producer.Reserve(0, 96));  // over forged words, and not written yet
  ASSERT_TRUE(ring.reader.Drain(kAll, Into(taken)).ok());
  EXPECT_EQ(taken.size(), 2u);
}

struct Checked {
  uint64_t count = 0;
  uint64_t wrong = 0;
};

// Number, then as many bytes as it says, each of its value.
std::vector<std::byte> Numbered(uint64_t number) {
  std::vector<std::byte> payload(8 + number % 97, std::byte{static_cast<uint8_t>(number)});
  std::memcpy(payload.data(), &number, 8);
  return payload;
}

void Check(Checked& checked, const RawRecord& record) {
  uint64_t number = 0;
  std::memcpy(&number, record.payload.data(), std::min<size_t>(8, record.payload.size()));
  const auto expected = Numbered(number);
  ++checked.count;
  if (!std::ranges::equal(record.payload, expected)) ++checked.wrong;
}

// Eight threads that change rings all the time, over rings of several sizes: what was recorded
// arrives once and intact, what was not is in the count of losses.
class Concurrent : public testing::TestWithParam<uint64_t> {};

TEST_P(Concurrent, EveryRecordArrivesOnceOrIsCountedLost) {
  constexpr uint32_t kThreads = 8, kCpus = 4;
  constexpr uint64_t kRecords = 60'000;
  Ring ring({.cpu_count = kCpus, .ring_bytes = GetParam()});
  std::atomic<uint64_t> recorded = 0;
  std::atomic<uint32_t> running = kThreads;
  std::vector<std::jthread> threads;
  for (uint32_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      std::minstd_rand random(id);
      for (uint64_t i = 0; i < kRecords; ++i)
        recorded += ring.Record(random() % kCpus, id, id, Numbered(i));
      --running;
    });
  }
  Checked checked;
  std::vector<std::vector<bool>> seen(kThreads, std::vector<bool>(kRecords));
  uint64_t twice = 0, named = 0;
  auto sink = [&](const RawRecord& record) {
    Check(checked, record);
    uint64_t number = 0;
    std::memcpy(&number, record.payload.data(), 8);
    named += !record.scanned;
    if (record.probe >= kThreads || number >= kRecords) return;
    if (seen[record.probe][number]) ++twice;
    seen[record.probe][number] = true;
  };
  for (uint64_t round = 0; running > 0; ++round) {
    ASSERT_TRUE(ring.reader.Drain(round % 2 ? 1000 : kAll, sink).ok());
    if (round % 3 == 0) {
      ASSERT_TRUE(ring.reader.Scan([&](uint32_t) { ++named; }).ok());
    }
    if (round % 16 == 0) ring.reader.ReleasePages();
  }
  ASSERT_TRUE(ring.reader.Drain(kAll, sink).ok());
  uint64_t lost = 0;
  for (uint32_t id = 0; id < kThreads; ++id)
    lost += ring.producer.counters(id).lost;
  EXPECT_EQ(checked.count, recorded);
  EXPECT_EQ(recorded + lost, kThreads * kRecords);
  EXPECT_EQ(named, recorded) << "by Scan or by Drain, once";
  EXPECT_EQ(checked.wrong, 0u);
  EXPECT_EQ(twice, 0u);
  EXPECT_EQ(ring.reader.backlog(), 0u);
}

INSTANTIATE_TEST_SUITE_P(RingSizes, Concurrent, testing::Values(4096, 64 << 10, 1 << 20, 8 << 20));

TEST(Reader, SteadyTargetUsesTheBeginningOfALargeRingOnly) {
  Ring ring({.cpu_count = 1, .ring_bytes = 64 << 20});
  uint64_t count = 0;
  for (int i = 0; i < 200'000; ++i) {
    ring.Record(0, 1, 0, Bytes(1000, 1));
    if (i % 100 != 0) continue;
    ASSERT_TRUE(ring.reader.Drain(kAll, [&](const auto&) { ++count; }).ok());
  }
  ASSERT_TRUE(ring.reader.Drain(kAll, [&](const auto&) { ++count; }).ok());
  EXPECT_EQ(count, 200'000u);
  EXPECT_LT(ring.ring.allocated(), 2u << 20);
}

TEST(Reader, ReleasesTheMemoryOfABurst) {
  Ring ring({.cpu_count = 2, .ring_bytes = 16 << 20});
  uint64_t count = 0;
  for (int burst = 0; burst < 3; ++burst) {
    for (int i = 0; i < 15'000; ++i)
      ASSERT_TRUE(ring.Record(1, 1, 0, Bytes(1000, 1)));
    EXPECT_GT(ring.ring.allocated(), 14u << 20);
    ASSERT_TRUE(ring.reader.Drain(kAll, [&](const auto&) { ++count; }).ok());
    ring.reader.ReleasePages();
    EXPECT_LT(ring.ring.allocated(), 1u << 20);
  }
  EXPECT_EQ(count, 45'000u);
}

// --- rings that no detour has written

class Hostile : public testing::Test {
 protected:
  // Who looks first, and at most, must find it.
  Status Drain() {
    const Status scanned = ring_.reader.Scan([](uint32_t) {});
    EXPECT_TRUE(scanned.ok() || scanned.error().reason == "RING_CORRUPT");
    return ring_.reader.Drain(kAll, [](const auto&) {});
  }
  RecordHeader& Header() { return *reinterpret_cast<RecordHeader*>(ring_.producer.At(0, 0)); }

  Ring ring_{{.cpu_count = 1, .ring_bytes = 4096}};
};

TEST_F(Hostile, HeadFarAhead) {
  ring_.producer.head(0) = 4096 + 8;
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
  ring_.producer.head(0) = 0;
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT") << "it stays corrupt";
}

TEST_F(Hostile, HeadBehindTheTail) {
  ring_.Record(0, 1, 0, {});
  ASSERT_TRUE(Drain().ok());
  ring_.producer.head(0) = 0;
  EXPECT_LE(ring_.reader.backlog(), 4096u);
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, HeadBehindWhatWasScanned) {
  for (int i = 0; i < 4; ++i)
    ring_.Record(0, 1, 0, {});
  ASSERT_TRUE(ring_.reader.Scan([](uint32_t) {}).ok());
  ring_.producer.head(0) -= 32;
  uint64_t named = 0;
  EXPECT_EQ(ReasonOf(ring_.reader.Scan([&](uint32_t) { ++named; })), "RING_CORRUPT");
  EXPECT_EQ(named, 0u);
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, HeadNotAligned) {
  ring_.producer.head(0) = 33;
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, LengthBeyondHead) {
  ring_.Record(0, 1, 0, {});
  Header().commit = CommitWord(0, 40);
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

// The longest that a commit word can say, begun in the last word of the last ring.
TEST(Reader, NothingReachesBeyondTheMargin) {
  const Geometry geometry{.cpu_count = 2, .ring_bytes = 512 << 10};
  const uint64_t last = geometry.ring_bytes - 8;
  ASSERT_EQ(last, kMaxRecordBytes);
  EXPECT_LE(geometry.records_offset(1) + last + kMaxRecordBytes, geometry.shadow_offset(0));
  Ring ring(geometry);
  ring.Record(1, 1, 0, Bytes(last - 32, 0));
  ASSERT_TRUE(ring.reader.Drain(kAll, [](const auto&) {}).ok());
  ring.producer.head(1) = last + kMaxRecordBytes;
  auto* header = reinterpret_cast<RecordHeader*>(ring.producer.At(1, last));
  header->commit = CommitWord(last, kMaxRecordBytes);
  header->payload_bytes = kMaxRecordBytes - 32;
  uint64_t bytes = 0;
  const auto sum = [&](const RawRecord& record) { bytes += record.payload.size(); };
  ASSERT_TRUE(ring.reader.Drain(kAll, sum).ok());
  EXPECT_EQ(bytes, kMaxRecordBytes - 32);
}

TEST_F(Hostile, LengthShorterThanAHeader) {
  ring_.Record(0, 1, 0, {});
  Header().commit = CommitWord(0, 24);
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, PayloadLargerThanItsRecord) {
  ring_.Record(0, 1, 0, Bytes(8, 0));
  Header().payload_bytes = 9;
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
  Header().payload_bytes = ~0u;
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, UnknownProbe) {
  ring_.Record(0, kMaxProbes, 0, {});
  EXPECT_EQ(ReasonOf(Drain()), "RING_CORRUPT");
}

TEST_F(Hostile, CommitWordOfAnotherPosition) {
  ring_.Record(0, 1, 0, {});
  Header().commit = CommitWord(4096, 32);
  uint64_t count = 0;
  EXPECT_TRUE(ring_.reader.Drain(kAll, [&](const auto&) { ++count; }).ok());
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace probed::ring

// Events of the running kernel through the stream; what they must say is known to whoever made the
// system calls.

#include "engine/kernel/stream.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <thread>

#include "engine/ring/clock.h"
#include "tests/event/ring_puppet.h"
#include "tests/kernel_stream/live_stream.h"

namespace probed::kernel {
namespace {

using testing::LiveStream;
using testing::NumberOf;
using testing::TextOf;

constexpr const char* kEvent = "syscalls/sys_enter_getpriority";

// Of this thread, or process, alone.
void OnlyOf(LiveStream& live, const std::string& event, pid_t tid) {
  ASSERT_TRUE(
      live.instance().Write("events/" + event + "/filter", "common_pid == " + std::to_string(tid)));
}

TEST(Stream, GivesTypedValuesAndWhoseTheyAre) {
  const auto live = LiveStream::Open("kreadtyped");
  if (!live) GTEST_SKIP() << "no tracefs";
  const auto schema = live->Add(kEvent, 7);
  ASSERT_TRUE(schema);
  EXPECT_EQ(schema->group, "syscalls");
  EXPECT_EQ(schema->kind, lang::ProbeKind::kTracepoint);
  const auto tid = static_cast<pid_t>(::syscall(SYS_gettid));
  OnlyOf(*live, kEvent, tid);
  ::prctl(PR_SET_NAME, "kread typed");
  ASSERT_TRUE(live->instance().Enable(kEvent));
  const uint64_t before = MonotonicNow();
  constexpr uint64_t kCalls = 1000;
  for (uint64_t i = 0; i < kCalls; ++i)
    ::syscall(SYS_getpriority, 0, i);
  const uint64_t after = MonotonicNow();
  const auto hits = live->TakeHits();
  ASSERT_EQ(hits.size(), kCalls);
  for (uint64_t i = 0; i < kCalls; ++i) {
    ASSERT_EQ(NumberOf(hits[i], "who"), i);
    ASSERT_GT(hits[i].monotonic_ns, before - 10'000'000);
    ASSERT_LT(hits[i].monotonic_ns, after + 10'000'000);
  }
  const event::HitRecord& last = hits.back();
  EXPECT_EQ(last.probe, 7u);
  EXPECT_EQ(last.tid, tid);
  EXPECT_EQ(last.target, (event::TargetId{::getpid(), 0}));
  EXPECT_STREQ(last.comm.data(), "kread typed");
  EXPECT_EQ(TextOf(last, "text"), "sys_getpriority(which: 0, who: 0x3e7)");
  EXPECT_EQ(live->stream().CountsOf(7).recorded, kCalls);
  EXPECT_EQ(live->stream().CountsOf(7).lost, 0u);
}

// The tid is the kernel's, whether or not the process was asked for in time; if it was, its name is
// its own. If not, the name is the kernel's guess, which may be of an earlier owner of the tid.
TEST(Stream, AProcessThatHasGoneIsKnownOrSaidNotToBe) {
  const auto live = LiveStream::Open("kreadgone");
  if (!live) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(live->Add(kEvent, 1));
  std::set<pid_t> children;
  ASSERT_TRUE(live->instance().Write("events/" + std::string(kEvent) + "/filter", "who == 24434"));
  ASSERT_TRUE(live->instance().Enable(kEvent));
  for (int i = 0; i < 50; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_NAME, "kread gone");
      ::syscall(SYS_getpriority, 0, 24434);
      ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    children.insert(child);
  }
  const auto hits = live->TakeHits();
  EXPECT_EQ(hits.size(), children.size());
  size_t known = 0;
  for (const event::HitRecord& hit : hits) {
    EXPECT_TRUE(children.erase(hit.tid) == 1);
    EXPECT_STRNE(hit.comm.data(), "");
    if (hit.target.pid == 0) continue;
    ++known;
    EXPECT_EQ(hit.target.pid, hit.tid);
    EXPECT_STREQ(hit.comm.data(), "kread gone");
  }
  std::printf("%zu of %zu known\n", known, hits.size());
}

TEST(Stream, AnEventThatWasTakenOutIsNotShownAndMayBeAddedAgain) {
  const auto live = LiveStream::Open("kreadremove");
  if (!live) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(live->Add(kEvent, 1));
  OnlyOf(*live, kEvent, static_cast<pid_t>(::syscall(SYS_gettid)));
  const auto twice = live->stream().Add(
      "syscalls", live->instance().Format("syscalls", "sys_enter_getpriority"), 2);
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().reason, "EVENT_TAKEN");
  ASSERT_TRUE(live->instance().Enable(kEvent));
  ::syscall(SYS_getpriority, 0, 0);
  live->stream().Remove(1);
  EXPECT_EQ(live->TakeHits().size(), 1u) << "what was recorded is published before";
  ::syscall(SYS_getpriority, 0, 0);
  EXPECT_TRUE(live->TakeHits().empty());
  ASSERT_TRUE(live->Add(kEvent, 2));
  ::syscall(SYS_getpriority, 0, 0);
  const auto hits = live->TakeHits();
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].probe, 2u);
}

// Whatever a ring too small for the burst has lost is told in the stream, and nothing twice.
TEST(Stream, TellsLossesInItsPlaces) {
  const auto live = LiveStream::Open("kreadlosses");
  if (!live) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(live->instance().Write("buffer_size_kb", "16"));
  ASSERT_TRUE(live->Add(kEvent, 1));
  OnlyOf(*live, kEvent, static_cast<pid_t>(::syscall(SYS_gettid)));
  ASSERT_TRUE(live->instance().Enable(kEvent));
  constexpr uint64_t kCalls = 300'000;
  for (uint64_t i = 0; i < kCalls; ++i)
    ::syscall(SYS_getpriority, 0, i);
  ASSERT_TRUE(live->instance().Disable(kEvent));
  uint64_t hits = 0, lost = 0;
  for (const event::Item& item : live->Take()) {
    if (const auto* loss = std::get_if<event::LossNotice>(&item)) {
      lost += loss->lost;
    } else {
      ++hits;
    }
  }
  const Stream::Counts counts = live->stream().CountsOf(1);
  EXPECT_EQ(hits + lost, kCalls);
  EXPECT_EQ(counts.recorded, hits);
  EXPECT_EQ(counts.lost, lost);
  EXPECT_EQ(live->instance().Statistic("overrun"), lost);
}

// Hits of the user's side stand between those of the kernel's exactly where the thread made them:
// user, kernel, user, kernel... of each of two threads, on whatever CPUs.
constexpr event::ProbeId kUser = 1;  // as the puppet has it
constexpr event::ProbeId kKernel = 2;
constexpr uint64_t kRounds = 20'000;

// `hit` records one on the user's side, the `number`th of the thread.
void ExpectAlternation(LiveStream& live, const std::function<void(int tid, uint64_t number)>& hit) {
  ASSERT_TRUE(live.Add(kEvent, kKernel));
  auto run = [&] {
    const auto tid = static_cast<int>(::syscall(SYS_gettid));
    ASSERT_TRUE(live.instance().Write("set_event_pid", std::to_string(tid)));
    ASSERT_TRUE(live.instance().Enable(kEvent));
    for (uint64_t number = 0; number < kRounds; ++number) {
      hit(tid, number);
      ::syscall(SYS_getpriority, 0, number);
    }
  };
  std::thread first(run);
  std::thread second(run);
  first.join();
  second.join();
  std::map<int, std::vector<event::ProbeId>> threads;
  for (const event::HitRecord& record : live.TakeHits())
    threads[record.tid].push_back(record.probe);
  EXPECT_EQ(threads.size(), 2u);
  for (const auto& [tid, probes] : threads) {
    ASSERT_EQ(probes.size(), 2 * kRounds);
    for (size_t i = 0; i < probes.size(); ++i)
      ASSERT_EQ(probes[i], i % 2 == 0 ? kUser : kKernel) << "at " << i << " of thread " << tid;
  }
}

TEST(Stream, TrapsAndKernelEventsOfAThreadAlternateAsTheyHappened) {
  const auto live = LiveStream::Open("kreadtraps");
  if (!live) GTEST_SKIP() << "no tracefs";
  ExpectAlternation(*live, [&](int tid, uint64_t number) {
    event::HitRecord hit = event::RingPuppet::Trap(tid, number);
    hit.probe = kUser;
    live->drainer().Publish(event::kNoSource, ring::ReadTsc(), hit);
  });
}

// A detour's record, moved to another CPU as often as not, and now and then a trap.
TEST(Stream, DetoursAndKernelEventsOfAThreadAlternateAsTheyHappened) {
  const auto live = LiveStream::Open("kreaddetours");
  if (!live) GTEST_SKIP() << "no tracefs";
  const auto puppet =
      std::make_shared<event::RingPuppet>(ring::Geometry{.cpu_count = 4, .ring_bytes = 4 << 20});
  const event::SourceId source = live->drainer().Add(puppet);
  ExpectAlternation(*live, [&](int tid, uint64_t number) {
    if (number % 16 == 0) {
      event::HitRecord hit = event::RingPuppet::Trap(tid, number);
      hit.probe = kUser;
      live->drainer().Publish(source, ring::ReadTsc(), hit);
      return;
    }
    const auto tsc = ring::ReadTsc();
    if (number % 64 == 1) std::this_thread::yield();
    ASSERT_TRUE(puppet->Record(static_cast<uint32_t>(number * 7 % 4), tid, tsc, number));
  });
  live->drainer().Remove(source);
}

}  // namespace
}  // namespace probed::kernel

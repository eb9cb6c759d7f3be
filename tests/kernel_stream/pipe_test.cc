// Events read as text, where the raw rings cannot be opened: what the kernel prints of them in
// another instance.

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include <fmt/format.h>

#include "engine/kernel/pipe_line.h"
#include "engine/lang/print.h"
#include "tests/kernel_stream/live_stream.h"

namespace probed::kernel {
namespace {

using testing::LiveStream;
using testing::OwnInstance;
using testing::TextOf;

constexpr const char* kEvent = "syscalls/sys_enter_getpriority";

TEST(PipeLine, IsTakenToPieces) {
  const auto line = ParsePipeLine(
      "          <idle>-0       [001] dNh2. 123456789: sched_switch: prev_comm=a: b ==> next");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->tid, 0);
  EXPECT_EQ(line->time, 123456789u);
  EXPECT_EQ(line->event, "sched_switch");
  EXPECT_EQ(line->text, ": prev_comm=a: b ==> next");
  EXPECT_EQ(line->flags, 0x01 | 0x04 | 0x08 | 0x20);
  EXPECT_EQ(line->preempt_count, 2);
}

TEST(PipeLine, ACommMayLookLikeTheRest) {
  const auto line =
      ParsePipeLine("   a-1 [002] .. -1234567 (  123456) [000] ..... 5: my_event: (f+0x0/0x1)");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->tid, 1234567);
  EXPECT_EQ(line->time, 5u);
  EXPECT_EQ(line->event, "my_event");
}

TEST(PipeLine, SystemCallsShowNoEvent) {
  const std::string head = "            bash-12      [001] .....  5: ";
  const std::string enter = head + "sys_read(fd: 0, buf: 1)", leave = head + "sys_read -> 0x1";
  auto line = ParsePipeLine(enter);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->event, "sys_enter_read");
  EXPECT_EQ(line->text, "sys_read(fd: 0, buf: 1)");
  line = ParsePipeLine(leave);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->event, "sys_exit_read");
  EXPECT_EQ(line->text, "sys_read -> 0x1");
}

TEST(PipeLine, OtherLinesAreNone) {
  for (const char* line :
       {"", " => do_syscall_64", "CPU:1 [LOST 12 EVENTS]", "          <idle>-0       [001] d..2.",
        "          <idle>-x       [001] d..2. 1: a: b", "          <idle>-0       [001] d..2. 1: a",
        "          <idle>-0       (", "                -"}) {
    EXPECT_FALSE(ParsePipeLine(line)) << line;
  }
  EXPECT_TRUE(SaysLost("CPU:1 [LOST 12 EVENTS]"));
  EXPECT_TRUE(SaysLost("CPU:0 [LOST EVENTS]"));
  EXPECT_FALSE(SaysLost("          CPU:1-7       [001] d..2. 1: a: [LOST 1 EVENTS]"));
}

// Whoever opens a device in a file system that is mounted without devices is refused, root too.
bool CoverRings(const OwnInstance& instance) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return false;
  for (uint32_t cpu = 0;; ++cpu) {
    const std::string ring =
        fmt::format("{}/per_cpu/cpu{}/trace_pipe_raw", instance.directory(), cpu);
    if (access(ring.c_str(), F_OK) != 0) return cpu > 0;
    if (mount("/dev/null", ring.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        mount(nullptr, ring.c_str(), nullptr, MS_BIND | MS_REMOUNT | MS_NODEV, nullptr) != 0)
      return false;
  }
}

// On a thread of its own, whose name space goes with it.
std::unique_ptr<LiveStream> OpenWithoutRings(const std::string& name) {
  bool covered = false;
  auto live = LiveStream::Open(name, [&](const OwnInstance& instance, const auto& open) {
    std::thread([&] {
      covered = CoverRings(instance);
      if (covered) open();
    }).join();
  });
  return covered ? std::move(live) : nullptr;
}

void Call(uint64_t times) {
  for (uint64_t i = 0; i < times; ++i)
    ::syscall(SYS_getpriority, 0, i);
}

void OnlyThisThread(const OwnInstance& instance) {
  ASSERT_TRUE(instance.Write("events/" + std::string(kEvent) + "/filter",
                             fmt::format("common_pid == {}", ::syscall(SYS_gettid))));
}

TEST(Pipe, TextIsTheKernelsWhereRingsAreRefused) {
  const auto live = OpenWithoutRings("kpipetext");
  auto other = OwnInstance::Create("kpipeother");
  if (!live || !other) GTEST_SKIP() << "no tracefs, or nothing may be mounted";
  EXPECT_NE(live->stream().text_only().find("Permission denied"), std::string::npos)
      << live->stream().text_only();
  const auto schema = live->Add(kEvent, 7);
  ASSERT_TRUE(schema);
  ASSERT_EQ(schema->fields.size(), 1u);
  EXPECT_TRUE(schema->has_text);
  OnlyThisThread(*other);
  OnlyThisThread(live->instance());
  ASSERT_TRUE(other->Enable(kEvent) && live->instance().Enable(kEvent));
  Call(1000);
  ASSERT_TRUE(other->Disable(kEvent) && live->instance().Disable(kEvent));
  const auto hits = live->TakeHits();
  const auto lines = other->Trace();
  ASSERT_EQ(hits.size(), 1000u);
  ASSERT_EQ(lines.size(), 1000u);
  for (size_t i = 0; i < hits.size(); ++i) {
    ASSERT_EQ(TextOf(hits[i], "text"), lines[i].substr(lines[i].find(": sys_") + 2));
    EXPECT_EQ(hits[i].probe, 7u);
    EXPECT_EQ(hits[i].tid, ::syscall(SYS_gettid));
    EXPECT_EQ(hits[i].target.pid, ::getpid());
    const event::HitRecord& before = hits[i == 0 ? 0 : i - 1];
    ASSERT_LE(before.monotonic_ns, hits[i].monotonic_ns);
  }
  EXPECT_EQ(live->stream().CountsOf(7).recorded, 1000u);
  EXPECT_EQ(live->stream().CountsOf(7).lost, 0u);
}

TEST(Pipe, LossesAreTheRingsOwn) {
  const auto live = OpenWithoutRings("kpipelosses");
  if (!live) GTEST_SKIP() << "no tracefs, or nothing may be mounted";
  ASSERT_TRUE(live->instance().Write("buffer_size_kb", "16"));
  ASSERT_TRUE(live->Add(kEvent, 1));
  OnlyThisThread(live->instance());
  ASSERT_TRUE(live->instance().Enable(kEvent));
  constexpr uint64_t kCalls = 100'000;
  Call(kCalls);
  ASSERT_TRUE(live->instance().Disable(kEvent));
  uint64_t hits = 0, lost = 0;
  for (const event::Item& item : live->Take()) {
    const auto* const loss = std::get_if<event::LossNotice>(&item);
    (loss != nullptr ? lost : hits) += loss != nullptr ? loss->lost : 1;
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(hits + lost, kCalls);
  EXPECT_EQ(live->stream().CountsOf(1).lost, lost);
  EXPECT_EQ(live->instance().Statistic("overrun"), lost);
}

TEST(Pipe, TwoEventsOfOneNameCannotBeTold) {
  const auto live = OpenWithoutRings("kpipenames");
  if (!live) GTEST_SKIP() << "no tracefs, or nothing may be mounted";
  auto& instance = live->instance();
  ASSERT_TRUE(instance.Define("p:kpipe_a/same /proc/self/exe:0x1000", "kpipe_a/same"));
  ASSERT_TRUE(instance.Define("p:kpipe_b/same /proc/self/exe:0x1000", "kpipe_b/same"));
  ASSERT_TRUE(live->Add("kpipe_a/same", 1));
  const auto second = live->stream().Add("kpipe_b", instance.Format("kpipe_b", "same"), 2);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().reason, "EVENT_NAME_TAKEN");
  live->stream().Remove(1);
  EXPECT_TRUE(live->Add("kpipe_b/same", 2));
}

}  // namespace
}  // namespace probed::kernel

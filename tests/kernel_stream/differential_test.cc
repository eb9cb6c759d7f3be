// The same run through our stream and through the `trace` file of a second instance: the same
// events, values and text. Not compared: the time, and whether rescheduling is due, which may
// change between the two.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <latch>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"
#include "engine/sys/proc.h"
#include "tests/kernel_stream/live_stream.h"

namespace probed::kernel {
namespace {

using testing::LiveStream;
using testing::OwnInstance;

std::string Ours(const event::HitRecord& hit) {
  const auto values = lang::DecodePayload(*hit.schema, hit.payload);
  EXPECT_TRUE(values.ok());
  const lang::TraceLine line{.comm = hit.comm.data(),
                             .tid = hit.tid,
                             .cpu = hit.cpu,
                             .monotonic_ns = 0,
                             .flags = lang::TraceFlags(hit.flags, hit.preempt_count),
                             .event = hit.schema->event,
                             .kind = hit.schema->kind,
                             .ip = hit.ip,
                             .function = hit.function};
  return values.ok() ? lang::FormatTraceLine(line, *hit.schema, *values) : "";
}

// "[001] d.s2." and the text; without the name, which ftrace may have forgotten.
std::string Comparable(const std::string& line) {
  const size_t cpu = line.find('[');
  const size_t text = line.find(": ", cpu);
  if (cpu == line.npos || text == line.npos) return line;
  std::string context = line.substr(cpu, 11);
  context[7] = '.';
  // In a uprobe's handler the kernel takes one off a preemption count of none, which borrows from
  // the bits that the other flags are made of: they differ by chance.
  if (context.ends_with("ff")) context.replace(6, 3, "...");
  return context + line.substr(text);
}

std::vector<std::string> Sorted(std::vector<std::string> lines) {
  std::transform(lines.begin(), lines.end(), lines.begin(), Comparable);
  std::sort(lines.begin(), lines.end());
  return lines;
}

// What stands in `lines` and not in `others`, both sorted; the first few.
std::vector<std::string> Missing(const std::vector<std::string>& lines,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> missing;
  std::set_difference(lines.begin(), lines.end(), others.begin(), others.end(),
                      std::back_inserter(missing));
  missing.resize(std::min<size_t>(missing.size(), 5));
  return missing;
}

// Between the two instances' handlers of one hit the thread may be moved.
void StayOnThisCpu() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(::sched_getcpu(), &cpus);
  ::sched_setaffinity(0, sizeof(cpus), &cpus);
}

bool FallsAsleep(pid_t tid) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto status = sys::ReadTaskStatus(tid);
    if (status.ok() && status->state == 'S') return true;
    std::this_thread::yield();
  }
  return false;
}

// Of a thread that does `work` and nothing else, once both instances listen to it.
void Compare(LiveStream& live, OwnInstance& theirs, const std::vector<std::string>& events,
             const std::function<void()>& work, size_t least) {
  std::atomic<pid_t> tid = 0;
  std::latch known(1), start(1);
  std::thread worker([&] {
    StayOnThisCpu();
    tid = static_cast<pid_t>(::syscall(SYS_gettid));
    known.count_down();
    start.wait();
    work();
  });
  known.wait();
  ASSERT_TRUE(FallsAsleep(tid)) << "it still makes system calls";
  const std::string filter = "common_pid == " + std::to_string(tid.load());
  event::ProbeId probe = 0;
  for (const std::string& event : events) {
    EXPECT_TRUE(live.Add(event, ++probe));
    for (const OwnInstance* instance : {&live.instance(), &theirs}) {
      EXPECT_TRUE(instance->Write("events/" + event + "/filter", filter));
      EXPECT_TRUE(instance->Enable(event));
    }
  }
  start.count_down();
  worker.join();
  for (const std::string& event : events) {
    live.instance().Disable(event);
    theirs.Disable(event);
  }
  std::vector<std::string> ours;
  for (const event::HitRecord& hit : live.TakeHits())
    ours.push_back(Ours(hit));
  EXPECT_GE(ours.size(), least);
  const auto left = Sorted(ours);
  const auto right = Sorted(theirs.Trace());
  EXPECT_THAT(Missing(left, right), ::testing::IsEmpty()) << "only ours";
  EXPECT_THAT(Missing(right, left), ::testing::IsEmpty()) << "only theirs";
}

TEST(KernelDifferential, TracepointsReadAsTheTraceFile) {
  const auto live = LiveStream::Open("kreadours");
  auto theirs = OwnInstance::Create("kreadtheirs");
  if (!live || !theirs) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(theirs->Write("buffer_size_kb", "4096"));
  theirs->Write("options/hash-ptr", "0");
  const auto work = [] {
    for (long i = 0; i < 200; ++i) {
      ::prctl(PR_SET_NAME, ("kread " + std::to_string(i)).c_str());
      ::syscall(SYS_getpriority, i, -i);
      ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), SIGURG);
      ::usleep(10);
    }
  };
  Compare(*live, *theirs,
          {"raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "syscalls/sys_enter_getpriority",
           "syscalls/sys_exit_getpriority", "syscalls/sys_enter_tgkill", "task/task_rename",
           "signal/signal_generate", "signal/signal_deliver", "timer/hrtimer_cancel", "kmem/kfree",
           "kmem/kmem_cache_free", "sched/sched_switch"},
          work, 2000);
}

extern "C" [[gnu::noinline]] int64_t KreadProbed(const void* memory, uint64_t number) {
  asm volatile("" ::: "memory");
  return memory == nullptr ? -1 : static_cast<int64_t>(number % 7);
}

// "/path/of/this/program:0xOFFSET" of the function.
std::string Location() {
  const auto maps = ReadFile("/proc/self/maps");
  const auto address = reinterpret_cast<uintptr_t>(&KreadProbed);
  std::istringstream lines(maps.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    unsigned long begin = 0, end = 0, offset = 0;
    int path = 0;
    if (sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &begin, &end, &offset, &path) != 3)
      continue;
    if (address < begin || address >= end) continue;
    char text[32];
    snprintf(text, sizeof(text), ":0x%lx", address - begin + offset);
    return line.substr(static_cast<size_t>(path)) + text;
  }
  return "";
}

TEST(KernelDifferential, UprobesOfEveryTypeReadAsTheTraceFile) {
  const auto live = LiveStream::Open("kreadours");
  auto theirs = OwnInstance::Create("kreadtheirs");
  if (!live || !theirs) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(theirs->Write("buffer_size_kb", "4096"));
  const std::string group = "kread_" + std::to_string(::getpid());
  const std::string place = Location();
  const std::string entry =
      "p:" + group + "/all " + place +
      " a=%si:u8 b=%si:x16 c=%si:s32 d=%si:u64 e=%si:x64 f=+0(%di):char g=+0(%di):u8[3]"
      " h=+0(%di):x64[2] i=+0(%di):string j=+0(+24(%di)):string[2] k=%si:b4@2/32 l=+0(%di):ustring"
      " m=+0(%di):char[4] n=+0(%di):s16[2] o=%si:s8 p=%si:x8 q=%si:u16 r=%si:s64 s=%si:x32"
      " t=+0(%di):u8[1] u=$comm:string v=%ip:x64 w=+0(%si):string";
  if (!live->instance().Define(entry, group + "/all")) GTEST_SKIP() << "no uprobe_events";
  ASSERT_TRUE(live->instance().Define(
      "r:" + group + "/ret " + place + " a=$retval:s64 b=$retval:x8", group + "/ret"));
  const char* const texts[] = {"first", "second"};
  struct {
    char text[24] = "Hello, \"kernel\" \xff\x01!";
    const char* const* texts;
  } memory;
  memory.texts = texts;
  const auto work = [&] {
    for (uint64_t i = 0; i < 300; ++i)
      KreadProbed(&memory, i * 0x0123'4567'89ab'cdef);
  };
  Compare(*live, *theirs, {group + "/all", group + "/ret"}, work, 600);
}

}  // namespace
}  // namespace probed::kernel

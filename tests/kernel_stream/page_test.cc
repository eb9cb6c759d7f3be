// Pages of the running kernel: libtraceevent's kbuffer as the second reader, then the same ones
// damaged; and losses against the ring's own counters.

#include "engine/kernel/page.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "base/file.h"
#include "engine/kernel/event_decoder.h"
#include "engine/kernel/page_reader.h"
#include "tests/kernel_stream/own_instance.h"

extern "C" {
#include <kbuffer.h>  // says nothing of C++
}

namespace probed::kernel {
namespace {

using testing::OwnInstance;
using Bytes = std::vector<std::byte>;

constexpr const char* kGroup = "syscalls";
constexpr const char* kName = "sys_enter_getpriority";

// Switches the event on for this thread; false: there is nothing to test on.
bool Begin(const OwnInstance& instance, const std::string& event) {
  return instance.Write("events/" + event + "/filter",
                        "common_pid == " + std::to_string(::syscall(SYS_gettid))) &&
         instance.Enable(event);
}

void Call(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    ::syscall(SYS_getpriority, 0, i);
}

std::vector<Bytes> Capture(const OwnInstance& instance) {
  std::vector<Bytes> pages;
  for (const std::string& cpu : instance.tracefs().Directories("per_cpu")) {
    const auto file = OpenFile(instance.directory() + "/per_cpu/" + cpu + "/trace_pipe_raw",
                               O_RDONLY | O_NONBLOCK);
    if (!file.ok()) continue;
    Bytes page(1 << 16);
    for (ssize_t bytes; (bytes = ::read(file->get(), page.data(), page.size())) > 0;)
      pages.emplace_back(page.begin(), page.begin() + bytes);
  }
  return pages;
}

// Enough for several pages on a CPU.
std::vector<Bytes> SomePages() {
  const auto instance = OwnInstance::Create("kreadpages");
  if (!instance || !Begin(*instance, std::string(kGroup) + "/" + kName)) return {};
  for (int i = 0; i < 10; ++i) {
    Call(100);
    ::usleep(1000);  // so that there are time extensions
  }
  return Capture(*instance);
}

struct Read {
  uint64_t time = 0;
  Bytes record;
  bool operator==(const Read&) const = default;
};

std::vector<Read> ByUs(const Bytes& bytes) {
  std::vector<Read> events;
  auto page = Page::Open(bytes);
  if (!page.ok()) return events;
  while (const auto event = page->Next())
    events.push_back({event->time, Bytes(event->record.begin(), event->record.end())});
  EXPECT_FALSE(page->damaged());
  return events;
}

std::vector<Read> ByLibrary(Bytes bytes) {
  std::vector<Read> events;
  kbuffer* const buffer = kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_SAME_AS_HOST);
  kbuffer_load_subbuffer(buffer, bytes.data());
  unsigned long long time = 0;
  for (void* data = kbuffer_read_event(buffer, &time); data != nullptr;
       data = kbuffer_next_event(buffer, &time)) {
    const auto* const begin = static_cast<const std::byte*>(data);
    events.push_back({time, Bytes(begin, begin + kbuffer_event_size(buffer))});
  }
  kbuffer_free(buffer);
  return events;
}

TEST(Page, ReadsWhatTheLibraryReads) {
  const auto pages = SomePages();
  if (pages.empty()) GTEST_SKIP() << "no tracefs";
  size_t events = 0;
  for (const Bytes& page : pages) {
    const auto ours = ByUs(page);
    EXPECT_EQ(ours, ByLibrary(page));
    events += ours.size();
  }
  EXPECT_EQ(events, 1000u);
}

// Nothing is read outside of what was given (each page has memory of its own, for sanitizers), the
// walk ends, and what is decoded is a payload of the event's schema.
TEST(Page, SurvivesDamage) {
  const auto pages = SomePages();
  if (pages.empty()) GTEST_SKIP() << "no tracefs";
  const auto instance = OwnInstance::Create("kreadformat");
  ASSERT_TRUE(instance);
  auto decoder = EventDecoder::Create(kGroup, instance->Format(kGroup, kName),
                                      std::make_shared<const Symbols>());
  ASSERT_TRUE(decoder.ok());
  std::mt19937 random(1);
  size_t damaged = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = pages[random() % pages.size()];
    for (uint32_t i = 0, count = 1 + random() % 8; i < count; ++i)
      bytes[random() % (i % 2 == 0 ? 64 : bytes.size())] = static_cast<std::byte>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    bytes.shrink_to_fit();
    auto page = Page::Open(bytes);
    if (!page.ok()) {
      ++damaged;
      continue;
    }
    size_t steps = 0;
    event::RingHit hit;
    while (const auto event = page->Next()) {
      ASSERT_LE(++steps, bytes.size());
      ASSERT_GE(event->record.data(), bytes.data());
      ASSERT_LE(event->record.data() + event->record.size(), bytes.data() + bytes.size());
      if (decoder->Decode(event->record, 0, hit)) {
        ASSERT_GE(hit.payload.size(), decoder->schema()->fixed_size);
      }
    }
    damaged += page->damaged() ? 1 : 0;
  }
  EXPECT_GT(damaged, 0u);
}

// A page that is full to its last byte has no room for the number of events lost before it.
Bytes FullPage(uint64_t commit_flags) {
  constexpr size_t kData = 4080;
  Bytes page(16 + kData);
  const uint64_t header[] = {1000, kData | commit_flags};
  std::memcpy(page.data(), header, sizeof(header));
  for (size_t at = 16; at < page.size(); at += 24) {
    const uint32_t head = 5 | 7u << 5;  // five words of data, 7 ticks later
    std::memcpy(page.data() + at, &head, sizeof(head));
  }
  return page;
}

TEST(Page, SaysThatItDoesNotKnowHowManyWereLost) {
  const Bytes quiet = FullPage(0);
  const Bytes lossy = FullPage(1u << 31);
  const auto none = Page::Open(quiet);
  const auto some = Page::Open(lossy);
  ASSERT_TRUE(none.ok() && some.ok());
  EXPECT_FALSE(none->loss().any);
  EXPECT_TRUE(some->loss().any);
  EXPECT_FALSE(some->loss().events);
  const auto events = ByUs(quiet);
  ASSERT_EQ(events.size(), 170u);
  EXPECT_EQ(events.back().time, 1000u + 170 * 7);
}

// Bursts that overrun a ring which nobody reads meanwhile; between them it is read, to a page's
// half.
void LossesAreExactFor(const std::string& event) {
  const auto instance = OwnInstance::Create("kreadloss");
  if (!instance) GTEST_SKIP() << "no tracefs";
  ASSERT_TRUE(instance->Write("buffer_size_kb", "64"));
  auto reader = PageReader::Open(instance->directory());
  ASSERT_TRUE(reader.ok()) << reader.error().ToString();
  ASSERT_TRUE(Begin(*instance, event));
  uint64_t read = 0, lost = 0;
  const auto drain = [&] {
    ASSERT_TRUE((*reader)
                    ->Drain(1 << 30,
                            [&](const ring::RawRecord& record) {
                              ++read;
                              lost += record.lost;
                            })
                    .ok());
  };
  // Reading makes system calls too.
  for (const uint64_t burst : {50u, 20'000u, 33u, 10'000u, 30'000u}) {
    ASSERT_TRUE(instance->Enable(event));
    Call(burst);
    ASSERT_TRUE(instance->Disable(event));
    drain();
  }
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(lost, (*reader)->lost());
  EXPECT_EQ(lost, instance->Statistic("overrun"));
  EXPECT_EQ(instance->Statistic("commit overrun"), 0u);
  EXPECT_EQ((*reader)->damaged(), 0u);
  if (event.starts_with(kGroup)) {
    EXPECT_EQ(read + lost, 60'083u);
  }
}

TEST(PageReader, LossesAreExact) {
  LossesAreExactFor("syscalls/sys_enter_getpriority");
}

TEST(PageReader, LossesAreExactForOtherSizesOfRecords) {
  for (const char* event : {"raw_syscalls/sys_enter", "raw_syscalls/sys_exit"})
    LossesAreExactFor(event);
}

}  // namespace
}  // namespace probed::kernel

// What CodeMemory writes, and when, as /proc/PID/mem shows it.

#include "engine/tracee/code_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "elf/module_map.h"
#include "engine/sys/proc.h"
#include "engine/tracee/process.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

constexpr size_t kPage = 4096, kPages = 3;

// The start of code that is at least kPages long.
RemoteAddr FindCode(pid_t pid) {
  auto mappings = elf::ParseMaps(*sys::ReadMaps(pid));
  for (const auto& mapping : *mappings) {
    if (mapping.executable && mapping.end - mapping.start >= kPages * kPage) return mapping.start;
  }
  return {};
}

class CodeMemoryTest : public TracerTest {
 protected:
  // With that many threads besides the first.
  void Start(int threads) {
    puppet_ = std::make_unique<Puppet>(
        "counter", std::vector{std::to_string(threads), std::string("1000000000")});
    puppet_->ReadLine();
    ASSERT_EQ(Attach(puppet_->pid()), "");
    code_ = FindCode(puppet_->pid());
    before_ = Present();
  }
  std::vector<uint8_t> Present() const {
    auto memory = OpenFile("/proc/" + std::to_string(puppet_->pid()) + "/mem", O_RDONLY);
    std::vector<uint8_t> bytes(kPages * kPage);
    auto at = static_cast<off_t>(code_.value);
    EXPECT_EQ(::pread(memory->get(), bytes.data(), bytes.size(), at), ssize_t(bytes.size()));
    return bytes;
  }
  void Run(const std::function<void(Stopped&)>& work) {
    auto run = [&](Stopped& stopped) -> Status {
      work(stopped);
      return {};
    };
    EXPECT_EQ(WithOneStopped(puppet_->pid(), run), "");
  }

  std::unique_ptr<Puppet> puppet_;
  RemoteAddr code_;
  std::vector<uint8_t> before_;
};

std::vector<uint8_t> Other(const std::vector<uint8_t>& bytes, size_t at, size_t size) {
  std::vector<uint8_t> other(bytes.begin() + at, bytes.begin() + at + size);
  for (uint8_t& byte : other)
    byte ^= 0xff;
  return other;
}

TEST_F(CodeMemoryTest, WritesOfAPageGoOutTogether) {
  Start(0);
  constexpr size_t kPlaces[] = {100, 7, 3000, kPage - 2, 2 * kPage + 1};
  std::vector<uint8_t> expected = before_;
  Run([&](Stopped& stopped) {
    CodeMemory code(stopped);
    for (size_t at : kPlaces) {
      auto bytes = Other(before_, at, 4);
      EXPECT_TRUE(code.Write(code_ + at, bytes).ok());
      std::copy(bytes.begin(), bytes.end(), expected.begin() + at);
      EXPECT_TRUE(code.Holds(code_ + at, bytes));
      // The first of a page is seen to be possible, the second waits.
      EXPECT_TRUE(at != 7 || Present()[7] == before_[7]);
    }
    code.Flush();
    EXPECT_EQ(Present(), expected);
    EXPECT_TRUE(code.Write(code_, before_).ok());
  });
  EXPECT_EQ(Present(), before_);
}

TEST_F(CodeMemoryTest, WhatIsNotMappedIsAnError) {
  Start(0);
  Run([&](Stopped& stopped) {
    CodeMemory code(stopped);
    uint8_t byte = 0;
    EXPECT_EQ(code.Read(RemoteAddr{kPage}, {&byte, 1}).error().reason, "MEMORY_UNREADABLE");
    EXPECT_EQ(code.Write(RemoteAddr{kPage}, {&byte, 1}).error().reason, "MEMORY_UNWRITABLE");
    EXPECT_FALSE(code.Holds(RemoteAddr{kPage}, {&byte, 1}));
    EXPECT_TRUE(code.Holds(code_, {before_.data(), 5000}));
  });
  EXPECT_EQ(Present(), before_);
}

TEST_F(CodeMemoryTest, NothingIsKeptWhileOthersRun) {
  Start(1);
  Run([&](Stopped& stopped) {
    CodeMemory code(stopped);
    auto bytes = Other(before_, 10, 2);
    for (size_t i : {0, 1}) {
      EXPECT_TRUE(code.Write(code_ + 10 + i, {&bytes[i], 1}).ok());
      EXPECT_EQ(Present()[10 + i], bytes[i]);
    }
    // Somebody else's write.
    auto original = std::as_bytes(std::span(before_).subspan(10, 2));
    EXPECT_TRUE(stopped.WriteMemory(code_ + 10, original).ok());
    EXPECT_TRUE(code.Holds(code_ + 10, {&before_[10], 2}));
  });
  EXPECT_EQ(Present(), before_);
}

}  // namespace
}  // namespace probed::tracee

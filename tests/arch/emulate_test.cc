// Cases by hand; execution_test.cc holds emulation against the processor.

#include "engine/arch/x86_64/emulate.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

constexpr uint64_t kOriginal = 0x7f0000401000;
constexpr uint64_t kStack = 0x7ffc00000100;

// Only words that were stored can be loaded.
class WordMemory : public MemoryBus {
 public:
  bool Load(uint64_t address, std::span<std::byte> out) override {
    auto word = words.find(address);
    if (word == words.end() || out.size() != sizeof(uint64_t)) return false;
    std::memcpy(out.data(), &word->second, out.size());
    return true;
  }
  bool Store(uint64_t address, std::span<const std::byte> bytes) override {
    if (read_only) return false;
    std::memcpy(&words[address], bytes.data(), sizeof(uint64_t));
    return true;
  }

  std::map<uint64_t, uint64_t> words;
  bool read_only = false;
};

struct EmulateTest : testing::Test {
  EmulateTest() {
    regs.rip = kOriginal;
    regs.rsp = kStack;
    regs.eflags = 0x202;
  }
  EmulationResult Run(const char* hex) {
    return Emulate(Decode(Hex(hex), kOriginal).value(), regs, memory);
  }

  user_regs_struct regs{};
  WordMemory memory;
};

TEST_F(EmulateTest, CallPushesTheOriginalReturnAddress) {
  EXPECT_EQ(Run("e8 10 00 00 00"), EmulationResult::kDone);
  EXPECT_EQ(regs.rip, kOriginal + 0x15);
  EXPECT_EQ(regs.rsp, kStack - 8);
  EXPECT_EQ(memory.words[kStack - 8], kOriginal + 5);
}

TEST_F(EmulateTest, PushOfTheStackPointerStoresItsOldValue) {
  EXPECT_EQ(Run("54"), EmulationResult::kDone);
  EXPECT_EQ(memory.words[kStack - 8], kStack);
}

TEST_F(EmulateTest, PopIntoTheStackPointerKeepsWhatItLoaded) {
  memory.words[kStack] = 0x1234;
  EXPECT_EQ(Run("5c"), EmulationResult::kDone);
  EXPECT_EQ(regs.rsp, 0x1234u);
}

TEST_F(EmulateTest, AFailedAccessChangesNothing) {
  memory.read_only = true;
  user_regs_struct before = regs;
  for (const char* hex : {"50", "e8 10 00 00 00", "c3", "c9", "ff 15 10 00 00 00"}) {
    EXPECT_EQ(Run(hex), EmulationResult::kDeclined) << hex;
    EXPECT_EQ(std::memcmp(&before, &regs, sizeof regs), 0) << hex;
  }
}

TEST_F(EmulateTest, ATargetThatIsNotCanonicalIsLeftToTheCopy) {
  regs.rax = 0x8000'0000'0000'0000;
  memory.words[kStack] = regs.rax;
  for (const char* hex : {"ff d0", "ff e0", "c3"}) {
    EXPECT_EQ(Run(hex), EmulationResult::kDeclined) << hex;
  }
  EXPECT_EQ(memory.words.count(kStack - 8), 0u);
}

TEST_F(EmulateTest, AProgramThatStepsItselfGetsItsTrapFromTheCopy) {
  regs.eflags |= 0x100;
  EXPECT_EQ(Run("90"), EmulationResult::kDeclined);
}

TEST_F(EmulateTest, ThirtyTwoBitResultsAreZeroExtended) {
  regs.rax = ~0ULL;
  EXPECT_EQ(Run("89 c0"), EmulationResult::kDone);  // mov %eax,%eax
  EXPECT_EQ(regs.rax, 0xffffffffu);
  regs.rip = kOriginal;
  regs.rcx = 0xffff'ffff'0000'0002;
  EXPECT_EQ(Run("67 e2 10"), EmulationResult::kDone);  // loop on ecx
  EXPECT_EQ(regs.rcx, 1u);
  EXPECT_EQ(regs.rip, kOriginal + 0x13);
}

}  // namespace
}  // namespace probed::arch

// Which regions can be copied, what the copies look like, and where threads enter and leave them.

#include "engine/arch/x86_64/region.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

constexpr uint64_t kOriginal = 0x401000;
constexpr uint64_t kCopy = 0x10401000;

std::vector<Instruction> Region(const char* hex) {
  std::vector<uint8_t> bytes = Hex(hex);
  std::vector<Instruction> region;
  for (size_t at = 0; at < bytes.size(); at += region.back().length)
    region.push_back(Decode(std::span(bytes).subspan(at), kOriginal + at).value());
  return region;
}

std::string CopyHex(const char* hex) {
  auto copy = BuildRegionCopy(Region(hex), kOriginal, kCopy);
  return copy.ok() ? ToHex(copy->code) : copy.error().reason;
}

TEST(RegionTest, InstructionsFallThroughToTheNextAndTheLastJumpsBack) {
  // push %rbp; mov %rsp,%rbp; sub $0x10,%rsp; jmp 0x401008
  EXPECT_EQ(CopyHex("55 48 89 e5 48 83 ec 10"), "55 48 89 e5 48 83 ec 10 e9 fb ff ff ef");
}

TEST(RegionTest, DistancesAreCorrectedForEachPlace) {
  // nop; mov 0x10(%rip),%eax; je 0x401019; ret
  EXPECT_EQ(CopyHex("90 8b 05 10 00 00 00 74 10 c3"), "90 8b 05 10 00 00 f0 0f 84 0c 00 00 f0 c3");
  // push %rbx; loop 0x401013; jmp back: loop +2; jmp over the way there; jmp 0x401013
  EXPECT_EQ(CopyHex("53 e2 10 90 90"), "53 e2 02 eb 05 e9 09 00 00 f0 90 90 e9 f4 ff ff ef");
}

TEST(RegionTest, ACallMayComeLast) {
  // push %rbx; call 0x401016 -> push %rbx; push 5(%rip); jmp 0x401016; .quad 0x401006
  EXPECT_EQ(CopyHex("53 e8 10 00 00 00"),
            "53 ff 35 05 00 00 00 e9 0a 00 00 f0 06 10 40 00 00 00 00 00");
}

TEST(RegionTest, ABranchToTheStartPassesTheSiteAgain) {
  // dec %ecx; jne 0x401000; nop
  EXPECT_EQ(CopyHex("ff c9 75 fc 90"), "ff c9 0f 85 f8 ff ff ef 90 e9 f7 ff ff ef");
}

TEST(RegionTest, AFarReturnLeavesByItself) {
  EXPECT_EQ(CopyHex("90 cb"), "90 cb");
}

TEST(RegionTest, RefusesWhatWouldNotBeTheSame) {
  const char* const kRefused[] = {
      "cc",                    // int3
      "53 9d",                 // popf needs a tracer
      "ff d4",                 // call *%rsp too
      "e8 10 00 00 00 90",     // a call whose return address is displaced
      "ff d0 90 90 90",        // the same through a register
      "90 75 01 90 90",        // je to a displaced instruction
      "90 e8 fb ff ff ff",     // call to one
      "90 e2 fe",              // loop to itself, which is displaced
      "8d 05 fb ff ff ff 90",  // lea of the second byte
      "90 8b 05 fa ff ff ff",  // load of itself
      "90 c7 f8 fa ff ff ff",  // xbegin that aborts to itself
      "c3 90 90 90 90",        // nothing runs into what follows
      "eb 10 90 90 90",
      "b8 27 00 00 00 0f 05",  // a syscall is restarted at its own address
      "cb 90",                 // nor into what follows a far return
  };
  for (const char* hex : kRefused)
    EXPECT_EQ(CopyHex(hex), "REGION_NOT_RELOCATABLE") << hex;
}

TEST(RegionTest, RefusalsNameTheInstruction) {
  auto copy = BuildRegionCopy(Region("90 ff d0 90 90"), kOriginal, kCopy);
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().message, "call %rax: its return address would be displaced");
}

TEST(RegionTest, ReportsDistancesThatDoNotReach) {
  auto copy = BuildRegionCopy(Region("8b 05 10 00 00 00"), kOriginal, kOriginal + (1ULL << 40));
  ASSERT_FALSE(copy.ok());
  EXPECT_EQ(copy.error().reason, "DISPLACEMENT_OUT_OF_RANGE");
}

TEST(RegionTest, ThreadsEnterAtEveryInstruction) {
  std::vector<Instruction> region = Region("53 e2 10 90 90");
  RegionCopy copy = BuildRegionCopy(region, kOriginal, kCopy).value();
  EXPECT_EQ(EnterRegionCopy(copy, kCopy, kOriginal + 1), kCopy + 1);
  EXPECT_EQ(EnterRegionCopy(copy, kCopy, kOriginal + 2), std::nullopt);
  ASSERT_TRUE(EnterRegionCopy(copy, kCopy, kOriginal + 3).has_value());
  EXPECT_EQ(EnterRegionCopy(copy, kCopy, kOriginal + 4), kCopy + 11);
}

TEST(RegionTest, ThreadsLeaveFromEveryInstruction) {
  std::vector<Instruction> region = Region("53 48 89 c3 ff d0");  // push; mov; call *%rax
  RegionCopy copy = BuildRegionCopy(region, kOriginal, kCopy).value();
  const std::pair<uint64_t, uint64_t> kPlaces[] = {{0, 0}, {1, 1}, {4, 4}, {10, 4}};
  for (auto [in_copy, in_region] : kPlaces) {
    user_regs_struct regs{};
    regs.rip = kCopy + in_copy;
    regs.rsp = 0x7000;
    ASSERT_TRUE(LeaveRegionCopy(copy, region, kOriginal, kCopy, regs)) << in_copy;
    EXPECT_EQ(regs.rip, kOriginal + in_region);
    EXPECT_EQ(regs.rsp, in_copy == 10 ? 0x7008u : 0x7000u);  // half a call is taken back
  }
  user_regs_struct elsewhere{};
  elsewhere.rip = kCopy + 2;
  EXPECT_FALSE(LeaveRegionCopy(copy, region, kOriginal, kCopy, elsewhere));
}

TEST(RegionTest, StatesNameTheirInstruction) {
  RegionCopy copy = BuildRegionCopy(Region("53 48 89 c3 90"), kOriginal, kCopy).value();
  ASSERT_EQ(copy.states.size(), 4u);
  const uint8_t kInstructions[] = {0, 1, 2, 2};
  for (size_t index = 0; index < 4; ++index)
    EXPECT_EQ(copy.states[index].instruction, kInstructions[index]);
  EXPECT_EQ(copy.states[3].original_ip, kOriginal + 5);
}

}  // namespace
}  // namespace probed::arch

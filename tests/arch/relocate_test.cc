// The bytes of each kind of copy.

#include "engine/arch/x86_64/relocate.h"

#include <gtest/gtest.h>

#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

constexpr uint64_t kOriginal = 0x401000;
constexpr uint64_t kCopy = 0x10401000;
constexpr uint64_t kFarCopy = 0x7f0000401000;

Result<OutOfLineCopy> Copy(const char* hex, uint64_t where) {
  return BuildCopy(Decode(Hex(hex), kOriginal).value(), kOriginal, where);
}

std::string CopyHex(const char* hex, uint64_t where = kCopy) {
  Result<OutOfLineCopy> copy = Copy(hex, where);
  return copy.ok() ? ToHex(copy->code) : copy.error().reason;
}

TEST(RelocateTest, PlainInstructionsJumpBack) {
  // push %rax; jmp 0x401001
  EXPECT_EQ(CopyHex("50"), "50 e9 fb ff ff ef");
  // push %rax; jmp *0(%rip); .quad 0x401001
  EXPECT_EQ(CopyHex("50", kFarCopy), "50 ff 25 00 00 00 00 01 10 40 00 00 00 00 00");
}

TEST(RelocateTest, RipRelativeDisplacementsAreRewritten) {
  // lock cmpxchg %ecx,0x10(%rip)
  EXPECT_EQ(CopyHex("f0 0f b1 0d 10 00 00 00"), "f0 0f b1 0d 10 00 00 f0 e9 fb ff ff ef");
  // vmovdqa64 0x10(%rip),%zmm0
  EXPECT_EQ(CopyHex("62 f1 fd 48 6f 05 10 00 00 00"),
            "62 f1 fd 48 6f 05 10 00 00 f0 e9 fb ff ff ef");
  EXPECT_EQ(CopyHex("8b 05 10 00 00 00", kFarCopy), "DISPLACEMENT_OUT_OF_RANGE");
}

TEST(RelocateTest, TheAbortTargetOfATransactionIsRewritten) {
  EXPECT_EQ(CopyHex("c7 f8 10 00 00 00"), "c7 f8 10 00 00 f0 e9 fb ff ff ef");
}

TEST(RelocateTest, JumpsGoToTheirTarget) {
  EXPECT_EQ(CopyHex("eb 10"), "e9 0d 00 00 f0");  // jmp 0x401012
  // jmp *0(%rip); .quad 0x401012
  EXPECT_EQ(CopyHex("eb 10", kFarCopy), "ff 25 00 00 00 00 12 10 40 00 00 00 00 00");
  EXPECT_EQ(CopyHex("c3"), "c3");
  EXPECT_EQ(CopyHex("3e ff e0"), "3e ff e0");
}

TEST(RelocateTest, ConditionalJumpsGetTheirLongForm) {
  // je 0x401012 -> je 0x401012; jmp 0x401002
  EXPECT_EQ(CopyHex("74 10"), "0f 84 0c 00 00 f0 e9 f7 ff ff ef");
  EXPECT_EQ(CopyHex("0f 84 10 00 00 00"), "0f 84 10 00 00 f0 e9 fb ff ff ef");
}

TEST(RelocateTest, ConditionsWithoutALongFormChooseBetweenTwoJumps) {
  // jrcxz 0x401012 -> jrcxz +5; jmp 0x401002; jmp 0x401012
  EXPECT_EQ(CopyHex("e3 10"), "e3 05 e9 fb ff ff ef e9 06 00 00 f0");
  // jecxz keeps the prefix that makes it test ecx
  EXPECT_EQ(CopyHex("67 e3 10"), "67 e3 05 e9 fb ff ff ef e9 06 00 00 f0");
  // je to where no distance reaches
  EXPECT_EQ(CopyHex("74 10", kFarCopy),
            "74 0e ff 25 00 00 00 00 02 10 40 00 00 00 00 00 "
            "ff 25 00 00 00 00 12 10 40 00 00 00 00 00");
  EXPECT_LE(Copy("67 e3 10", kFarCopy)->code.size(), kMaxCopySize);
}

TEST(RelocateTest, ADirectCallPushesTheOriginalReturnAddress) {
  // call 0x401015 -> push 5(%rip); jmp 0x401015; .quad 0x401005
  EXPECT_EQ(CopyHex("e8 10 00 00 00"), "ff 35 05 00 00 00 e9 0a 00 00 f0 05 10 40 00 00 00 00 00");
  EXPECT_LE(Copy("e8 10 00 00 00", kFarCopy)->code.size(), kMaxCopySize);
}

TEST(RelocateTest, AnIndirectCallPushesTheOriginalReturnAddressToo) {
  // call *%rax -> push 2(%rip); jmp *%rax; .quad 0x401002
  EXPECT_EQ(CopyHex("ff d0"), "ff 35 02 00 00 00 ff e0 02 10 40 00 00 00 00 00");
  // call *0x10(%rip) -> push 6(%rip); jmp *0x401016; .quad 0x401006
  EXPECT_EQ(CopyHex("ff 15 10 00 00 00"),
            "ff 35 06 00 00 00 ff 25 0a 00 00 f0 06 10 40 00 00 00 00 00");
  // notrack call *8(%r15)
  EXPECT_EQ(CopyHex("3e 41 ff 57 08"), "ff 35 05 00 00 00 3e 41 ff 67 08 05 10 40 00 00 00 00 00");
}

TEST(RelocateTest, CallsThroughTheStackPointerAreLeftInASingleStep) {
  for (const char* hex : {"ff d4", "ff 54 24 08", "ff 14 24"}) {
    EXPECT_FALSE(Copy(hex, kCopy)->boosted) << hex;
    EXPECT_FALSE(Copy(hex, kCopy)->ends_in_trap) << hex;
    EXPECT_EQ(CopyHex(hex), hex);
  }
}

TEST(RelocateTest, APopfEndsInATrap) {
  EXPECT_FALSE(Copy("9d", kCopy)->boosted);
  EXPECT_TRUE(Copy("9d", kCopy)->ends_in_trap);
  EXPECT_EQ(CopyHex("9d"), "9d cc");
}

TEST(RelocateTest, FarBranchesLeaveByThemselves) {
  for (const char* hex : {"cb", "ff 28", "48 cb"}) {
    EXPECT_TRUE(Copy(hex, kCopy)->boosted) << hex;
    EXPECT_EQ(CopyHex(hex), hex);
  }
}

TEST(RelocateTest, AHalfDoneIndirectCallIsTakenBack) {
  Instruction instruction = Decode(Hex("ff d0"), kOriginal).value();
  OutOfLineCopy copy = BuildCopy(instruction, kOriginal, kCopy).value();
  user_regs_struct regs{};
  regs.rip = kCopy + 6;
  regs.rsp = 0x7000;
  EXPECT_TRUE(LeaveCopy(copy, instruction, kOriginal, kCopy, regs));
  EXPECT_EQ(regs.rip, kOriginal);
  EXPECT_EQ(regs.rsp, 0x7008u);
}

TEST(RelocateTest, ASyscallLoadsTheOriginalReturnAddressIntoRcx) {
  // syscall; movabs $0x401002,%rcx; jmp 0x401002
  EXPECT_EQ(CopyHex("0f 05"), "0f 05 48 b9 02 10 40 00 00 00 00 00 e9 f1 ff ff ef");
}

TEST(RelocateTest, RefusedInstructionsHaveNoCopy) {
  EXPECT_EQ(CopyHex("cc"), "INSTRUCTION_REFUSED");
}

TEST(RelocateTest, EveryStopInACopyHasAnOriginalPlace) {
  OutOfLineCopy jump = Copy("74 10", kCopy).value();
  EXPECT_EQ(OriginalIp(jump, kCopy, kCopy), kOriginal);
  EXPECT_EQ(OriginalIp(jump, kCopy, kCopy + 6), kOriginal + 2);
  EXPECT_EQ(OriginalIp(jump, kCopy, kCopy + 1), std::nullopt);
  OutOfLineCopy loop = Copy("e2 10", kCopy).value();
  EXPECT_EQ(OriginalIp(loop, kCopy, kCopy), kOriginal);
  EXPECT_EQ(OriginalIp(loop, kCopy, kCopy + 2), kOriginal + 2);
  EXPECT_EQ(OriginalIp(loop, kCopy, kCopy + 7), kOriginal + 0x12);
  OutOfLineCopy call = Copy("e8 10 00 00 00", kCopy).value();
  EXPECT_EQ(OriginalIp(call, kCopy, kCopy + 6), kOriginal + 0x15);
}

TEST(RelocateTest, AThreadInsideASyscallCanBeMovedBack) {
  Instruction instruction = Decode(Hex("0f 05"), kOriginal).value();
  OutOfLineCopy copy = BuildCopy(instruction, kOriginal, kCopy).value();
  user_regs_struct regs{};
  regs.rip = kCopy + 2;
  regs.rcx = kCopy + 2;
  regs.r11 = 0x246;
  EXPECT_TRUE(LeaveCopy(copy, instruction, kOriginal, kCopy, regs));
  EXPECT_EQ(regs.rip, kOriginal + 2);
  EXPECT_EQ(regs.rcx, kOriginal + 2);
  EXPECT_EQ(regs.r11, 0x246u);
  regs.rip = 0x5000;
  EXPECT_FALSE(LeaveCopy(copy, instruction, kOriginal, kCopy, regs));
}

}  // namespace
}  // namespace probed::arch

// One case per instruction form, the assembly beside its bytes.

#include <gtest/gtest.h>

#include "engine/arch/x86_64/instruction.h"
#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

constexpr uint64_t kAddress = 0x401000;

Instruction DecodeHex(const char* hex) {
  std::vector<uint8_t> code = Hex(hex);
  Result<Instruction> instruction = Decode(code, kAddress);
  EXPECT_TRUE(instruction.ok()) << hex;
  if (!instruction.ok()) return {};
  EXPECT_EQ(instruction->length, code.size()) << hex;
  return std::move(instruction).value();
}

struct ExecutionCase {
  const char* assembly;
  const char* hex;
};

void ExpectExecution(std::initializer_list<ExecutionCase> cases, Execution execution) {
  for (const auto& [assembly, hex] : cases) {
    Instruction instruction = DecodeHex(hex);
    EXPECT_EQ(static_cast<int>(instruction.execution), static_cast<int>(execution))
        << assembly << ": " << instruction.refusal;
    EXPECT_EQ(instruction.refusal.empty(), execution != Execution::kRefused) << assembly;
  }
}

TEST(DecodeTest, EmulatesWhatIsCheap) {
  ExpectExecution(
      {
          {"nop", "90"},
          {"endbr64", "f3 0f 1e fa"},
          {"nopl 0(%rax,%rax,1)", "0f 1f 44 00 00"},
          {"cs nopw 0(%rax,%rax,1)", "66 2e 0f 1f 84 00 00 00 00 00"},
          {"pause", "f3 90"},
          {"prefetchw (%rax)", "0f 0d 08"},
          {"prefetcht0 0x10(%rip)", "0f 18 0d 10 00 00 00"},
          {"push %rax", "50"},
          {"push %r15", "41 57"},
          {"push $-16", "6a f0"},
          {"pop %rsp", "5c"},
          {"mov %rsp,%rbp", "48 89 e5"},
          {"mov $-1,%eax", "b8 ff ff ff ff"},
          {"movabs", "48 b8 11 22 33 44 55 66 77 88"},
          {"lea 0x10(%rip),%rax", "48 8d 05 10 00 00 00"},
          {"sub $0x10,%rsp", "48 83 ec 10"},
          {"test %edi,%edi", "85 ff"},
          {"jmp .", "eb fe"},
          {"je", "0f 84 10 00 00 00"},
          {"call", "e8 10 00 00 00"},
          {"data16 data16 rex.W call (__tls_get_addr)", "66 66 48 e8 10 00 00 00"},
          {"call *0x10(%rip)", "ff 15 10 00 00 00"},
          {"rex.W call *0x10(%rip)", "48 ff 15 10 00 00 00"},
          {"notrack jmp *%rax", "3e ff e0"},
          {"call *%fs:0x10", "64 ff 14 25 10 00 00 00"},
          {"ret", "c3"},
          {"repz ret", "f3 c3"},
          {"bnd ret", "f2 c3"},
          {"ret $8", "c2 08 00"},
          {"loop", "e2 f0"},
          {"jrcxz", "e3 10"},
          {"jecxz", "67 e3 10"},
          {"leave", "c9"},
      },
      Execution::kEmulate);
}

TEST(DecodeTest, CopiesTheRest) {
  ExpectExecution(
      {
          {"lock xadd %eax,(%rdi)", "f0 0f c1 07"},
          {"lock cmpxchg %ecx,0x10(%rip)", "f0 0f b1 0d 10 00 00 00"},
          {"mov %fs:0x28,%rax", "64 48 8b 04 25 28 00 00 00"},
          {"push 0x10(%rip)", "ff 35 10 00 00 00"},
          {"pop 8(%rsp)", "8f 44 24 08"},
          {"pushf", "9c"},
          {"rep stos", "f3 48 ab"},
          {"xchg %rax,(%rsi)", "48 87 06"},
          {"mfence", "0f ae f0"},
          {"enter $16,$0", "c8 10 00 00"},
          {"syscall", "0f 05"},
          {"lret", "cb"},
          {"ljmp *(%rax)", "ff 28"},
          {"xbegin", "c7 f8 10 00 00 00"},
          {"vmovdqa64 0x10(%rip),%zmm0", "62 f1 fd 48 6f 05 10 00 00 00"},
          {"vbroadcastss -16(%rip),%ymm0", "c4 e2 7d 18 05 f0 ff ff ff"},
          {"vpternlogd $0xff,%zmm0,%zmm0,%zmm0", "62 f3 7d 48 25 c0 ff"},
          {"rdsspq %rax", "f3 48 0f 1e c8"},
          {"serialize", "0f 01 e8"},
          {"movdir64b (%rax),%rcx", "66 0f 38 f8 08"},
          {"fnstenv 0x20(%rsp)", "d9 74 24 20"},
          {"rdtscp", "0f 01 f9"},
          {"66 push %ax", "66 50"},
          {"mov %ds,%eax", "8c d8"},
          {"vprefetch0: invalid, must not pass for a nop", "c4 e1 78 18 0b"},
      },
      Execution::kCopyAndJump);
}

TEST(DecodeTest, TrapsBehindWhatTheJumpBackWouldSpoil) {
  ExpectExecution({{"popf", "9d"}, {"popfw", "66 9d"}}, Execution::kCopyAndTrap);
}

TEST(DecodeTest, RefusesWithWords) {
  ExpectExecution(
      {
          {"int3", "cc"},
          {"int1", "f1"},
          {"int $0x80", "cd 80"},
          {"hlt", "f4"},
          {"cli", "fa"},
          {"sti", "fb"},
          {"in", "e4 10"},
          {"out %al,(%dx)", "ee"},
          {"insb", "6c"},
          {"iretq", "48 cf"},
          {"ud2", "0f 0b"},
          {"mov %eax,%ss", "8e d0"},
          {"lcall *(%rax)", "ff 18"},
          {"sysenter", "0f 34"},
          {"wrmsr", "0f 30"},
          {"enclu", "0f 01 d7"},
          {"data16 call", "66 e8 10 00 00 00"},
          {"data16 jmp *%rax", "66 ff e0"},
      },
      Execution::kRefused);
}

TEST(DecodeTest, RefusesTheVsyscallPage) {
  Result<Instruction> instruction = Decode(Hex("0f 05"), 0xffffffffff600007);
  ASSERT_TRUE(instruction.ok());
  EXPECT_EQ(instruction->execution, Execution::kRefused);
  EXPECT_NE(instruction->refusal.find("vsyscall"), std::string::npos);
}

TEST(DecodeTest, SaysWhatIsUndecodable) {
  for (const char* hex : {"06", "0e", "62 f1", "9a 00 00 00 00 00 00", "ea", "d6", "f0 90", "",
                          "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90"}) {
    Result<Instruction> instruction = Decode(Hex(hex), kAddress);
    ASSERT_FALSE(instruction.ok()) << hex;
    EXPECT_EQ(instruction.error().reason, "INSTRUCTION_UNDECODABLE");
  }
}

TEST(DecodeTest, DescribesBranches) {
  EXPECT_TRUE(DecodeHex("e8 10 00 00 00").is_call);
  EXPECT_TRUE(DecodeHex("ff d0").is_call);
  EXPECT_TRUE(DecodeHex("c3").is_return);
  EXPECT_TRUE(DecodeHex("e3 10").is_branch);
  EXPECT_TRUE(DecodeHex("ff 25 10 00 00 00").is_branch);
  EXPECT_FALSE(DecodeHex("50").is_branch);
  EXPECT_TRUE(DecodeHex("0f 05").is_syscall);
}

TEST(DecodeTest, TellsWhatIsExecutedRoundByRound) {
  for (const char* hex : {"f3 a4", "f3 48 a5", "66 f3 a5", "f2 ae", "f3 a6", "67 f3 aa", "f3 ab"})
    EXPECT_TRUE(DecodeHex(hex).repeats) << hex;
  // movsb, rep ret, movss, bnd jmp, pause, endbr64, crc32
  for (const char* hex : {"a4", "f3 c3", "f3 0f 10 00", "f2 e9 10 00 00 00", "f3 90", "f3 0f 1e fa",
                          "f2 0f 38 f1 c0"})
    EXPECT_FALSE(DecodeHex(hex).repeats) << hex;
}

TEST(DecodeTest, FindsTheDisplacementBehindAnyPrefix) {
  struct {
    const char* hex;
    uint8_t at;
  } cases[] = {
      {"8b 05 10 00 00 00", 2},                 // mov 0x10(%rip),%eax
      {"48 81 3d 10 00 00 00 01 00 00 00", 3},  // cmpq $1,0x10(%rip): an immediate behind it
      {"c5 f8 28 05 10 00 00 00", 4},           // vmovaps, two-byte VEX
      {"c4 e2 7d 18 05 10 00 00 00", 5},        // vbroadcastss, three-byte VEX
      {"62 f1 fd 48 6f 05 10 00 00 00", 6},     // vmovdqa64, EVEX
      {"67 8b 05 10 00 00 00", 3},              // mov 0x10(%eip),%eax
  };
  for (const auto& [hex, at] : cases) {
    Instruction instruction = DecodeHex(hex);
    EXPECT_TRUE(instruction.rip_relative) << hex;
    EXPECT_EQ(instruction.displacement_at, at) << hex;
  }
  EXPECT_FALSE(DecodeHex("8b 04 25 10 00 00 00").rip_relative);  // mov 0x10,%eax
}

TEST(DecodeTest, Prints) {
  EXPECT_EQ(DecodeHex("48 8d 05 10 00 00 00").text, "lea 0x401017, %rax");
  EXPECT_EQ(DecodeHex("e8 10 00 00 00").text, "call 0x401015");
}

}  // namespace
}  // namespace probed::arch

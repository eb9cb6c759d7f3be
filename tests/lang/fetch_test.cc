// Failed reads and the kernel's string rules.

#include <gtest/gtest.h>

#include "tests/lang/recorded.h"

namespace probed::lang::testing {
namespace {

constexpr FetchLimits kKernelLimits{4096, true};

std::string Text(const std::string& arguments, FakeContext& context) {
  return Recorded(Dialect::kKernel, "p", arguments).Text(context, kKernelLimits);
}

TEST(Fetch, FailedNumbersAreZero) {
  FakeContext context;
  EXPECT_EQ(Text("a=@0 b=+0(+0(%di)):s8 c=$stack1 d=@0:u8[3] e=@0:char f=@0:b1@0/8", context),
            std::string("a=0x0 b=0 c=0x0 d={0,0,0} e='") + '\0' + "' f=0");
}

TEST(Fetch, FailedStringsAreFaults) {
  FakeContext context;
  context.Map(0x1000, "no end");
  EXPECT_EQ(Text("a=@0:string b=+0(+0(%di)):string c=@0x1000:string d=@0:string[2]", context),
            "a=(fault) b=(fault) c=(fault) d={(fault),(fault)}");
}

// The kernel shows the next string in both, and repeats an earlier event's number.
TEST(Fetch, FailedInnerLoadsBorrowNothing) {
  FakeContext context;
  context.MapString(0x1000, "text");
  EXPECT_EQ(Text("a=+0(+0(%di)):string b=@0x1000:string c=+0(+0(%di))", context),
            "a=(fault) b=\"text\" c=0x0");
}

// As the kernel's copy does: what is readable, then zeros.
TEST(Fetch, ANumberAtTheEdgeKeepsItsReadableBytes) {
  FakeContext context;
  context.Map(0x1000, "abc");
  EXPECT_EQ(Text("a=@0x1001:x32 b=@0x1002:b8@0/64 c=+0(@0x1000)", context), "a=0x6362 b=99 c=0x0");
}

TEST(Fetch, ArraysGoOnBehindAHole) {
  FakeContext context;
  context.Map(0x1000, "abc");
  context.Map(0x1006, "xyz");
  EXPECT_EQ(Text("a=@0x1000:x8[9]", context), "a={0x61,0x62,0x63,0x0,0x0,0x0,0x78,0x79,0x7a}");
  EXPECT_EQ(Text("a=@0x1000:x16[4]", context), "a={0x6261,0x63,0x0,0x7978}");
}

TEST(Fetch, StringArraysStopAtAFailedPointer) {
  FakeContext context;
  const uint64_t pointers[] = {0x2000, 0, 0x2000};
  context.MapObject(0x1000, pointers);
  context.MapString(0x2000, "s");
  EXPECT_EQ(Text("a=@0x1000:string[4]", context), "a={\"s\",(fault),\"s\",(fault)}");
  EXPECT_EQ(Text("a=\\0x2000:string[2] b=\\0x2000:string", context), "a={\"s\",(fault)} b=\"s\"");
}

TEST(Fetch, OffsetsKeepThirtyTwoBits) {
  FakeContext context;
  context.Map(0x1000, "abcdefgh01234567");
  context.regs[Reg::kDi] = 0x1001;
  EXPECT_EQ(Text("a=+4294967297(%di):char b=+0xffffffff(%di):char c=-1(%di):char", context),
            "a='c' b='a' c='a'");
}

TEST(Fetch, FileOffsetsStartAtTheBase) {
  FakeContext context;
  context.base = 0x1000;
  context.Map(0x1000,
              "\x7f"
              "ELF");
  EXPECT_EQ(Text("a=@+1:char b=@+-1:u8", context), "a='E' b=0");
}

TEST(Fetch, TypesCutTheValue) {
  FakeContext context;
  context.regs[Reg::kDi] = 0xfffffffffffffffe;
  EXPECT_EQ(Text("a=%di:u8 b=%di:s8 c=%di:s64 d=\\300:u8 e=%di:b3@1/8", context),
            "a=254 b=-2 c=-2 d=44 e=7");
}

// 8 common bytes, 8 of address, a 4-byte location and the text with its NUL make at most 4072.
TEST(Fetch, KernelRecordsHaveACliff) {
  const auto with_string = [](size_t length) {
    FakeContext context;
    context.Map(0x1000, std::string(length, 'x') + '\0');
    return Text("s=@0x1000:string", context);
  };
  EXPECT_EQ(with_string(4051), "s=\"" + std::string(4051, 'x') + "\"");
  EXPECT_EQ(with_string(4052), "dropped");
  EXPECT_EQ(with_string(4095), "dropped");
  EXPECT_EQ(with_string(4096), "s=(fault)");
}

TEST(Fetch, KernelReturnRecordsAreEightBytesLonger) {
  FakeContext context;
  context.Map(0x1000, std::string(4044, 'x') + '\0');
  EXPECT_EQ(Recorded(Dialect::kKernel, "r", "s=@0x1000:string").Text(context, kKernelLimits),
            "dropped");
}

TEST(Fetch, KernelConstantsFault) {
  FakeContext context;
  EXPECT_EQ(Text("a=\\\"text\" c=$comm", context), "a=(fault) c=\"kgrbin\"");
}

TEST(Fetch, AShortStringTakesOneRead) {
  FakeContext context;
  context.Map(0x1000, std::string(300, 's') + '\0' + std::string(2000, 'x'));
  context.regs[Reg::kDi] = 0x1000 + 200;
  Recorded recorded(Dialect::kExtended, "p", "s=+0(%di):string");
  EXPECT_EQ(recorded.Text(context), "s=\"" + std::string(100, 's') + "\"");
  EXPECT_EQ(context.reads, 1u);
}

TEST(Fetch, ThePayloadIsReplaced) {
  FakeContext context;
  context.regs[Reg::kDi] = 1;
  Recorded recorded(Dialect::kExtended, "p", "%di:u8");
  std::vector<std::byte> payload(100, std::byte{0xaa});
  Fetch(*recorded.definition().program, {}, context, payload);
  EXPECT_EQ(payload, std::vector<std::byte>{std::byte{1}});
}

}  // namespace
}  // namespace probed::lang::testing

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>

#include "tests/lang/recorded.h"

namespace probed::lang::testing {
namespace {

DefinitionSet::Applied Apply(Dialect dialect, const std::string& line) {
  DefinitionSet set(dialect);
  FakeFiles files = OneFile();
  return set.Apply(line, files);
}

std::string Readback(const std::string& line) {
  const auto applied = Apply(Dialect::kExtended, line);
  if (!applied.verdict.ok) return applied.verdict.code;
  // Feeding it back must recreate it.
  std::string readback = applied.verdict.readback.at(0);
  EXPECT_EQ(Apply(Dialect::kExtended, readback).verdict.readback.at(0), readback);
  return readback;
}

std::string Text(const std::string& kind, const std::string& arguments, FakeContext& context,
                 FetchLimits limits = {}) {
  return Recorded(Dialect::kExtended, kind, arguments).Text(context, limits);
}

FakeContext Hit() {
  FakeContext context;
  context.Map(0x1000, std::string_view("GET /\0\x01\"\\\xff tail", 15));
  context.regs[Reg::kDi] = 1;
  context.regs[Reg::kSi] = 0x1000;
  context.regs[Reg::kDx] = 5;
  context.regs[Reg::kCx] = 4;
  context.regs[Reg::kR8] = 5;
  context.regs[Reg::kR9] = 6;
  context.regs[Reg::kSp] = 0x7000;
  const uint64_t stack[] = {0xeeee, 7, 8};  // return address first
  context.MapObject(0x7000, stack);
  return context;
}

TEST(ExtendedPlace, TakesSymbols) {
  EXPECT_EQ(Readback("p:g/a /bin/x:malloc"), "p:g/a /bin/x:0x00000000000009a0");
  EXPECT_EQ(Readback("p:g/a /bin/x:malloc+0x10"), "p:g/a /bin/x:0x00000000000009b0");
  EXPECT_EQ(Readback("p:g/a libc.so.6:malloc%return"), "r:g/a libc.so.6:0x00000000000009a0");
  EXPECT_EQ(Readback("p:g/a libc.so.6:16"), "p:g/a libc.so.6:0x0000000000000010");
  EXPECT_EQ(Readback("p /bin/x:malloc(0x20)"),
            "p:uprobes/p_x_0x9a0 /bin/x:0x00000000000009a0(0x20)");
  EXPECT_EQ(Readback("p:g/a /bin/x:ns::f"), "p:g/a /bin/x:0x0000000000000030");
}

TEST(ExtendedPlace, TakesAddressesOfAProcess) {
  EXPECT_EQ(Readback("p:g/a 1234:0x7f0012340000 %di"), "p:g/a 1234:0x00007f0012340000 arg1=%di");
  EXPECT_EQ(Readback("p 1234:16"), "p:uprobes/p_1234_0x10 1234:0x0000000000000010");
  EXPECT_EQ(Readback("p:g/a 77:0x10"), "PROCESS_NOT_ATTACHED");
  EXPECT_EQ(Readback("p:g/a 1234:0x10(0x20)"), "BAD_REFCNT");
  EXPECT_EQ(Readback("p:g/a 1234:0x1z"), "BAD_UPROBE_OFFS");
  EXPECT_EQ(Readback("p:g/a 1234:0x10%z"), "BAD_ADDR_SUFFIX");
  EXPECT_EQ(Readback("r:g/a 1234:0x10"), "BAD_RETPROBE");
  EXPECT_EQ(Readback("p:g/a 1234:0x10%return"), "BAD_RETPROBE");
  EXPECT_EQ(Readback("p:g/a 1234:0x10 @+4"), "BAD_FILE_OFFS");
  EXPECT_EQ(Readback("p:g/a 1234:0x10 +0(%si):bytes(@+4)"), "BAD_FILE_OFFS");
}

TEST(ExtendedPlace, IsOfAProgramNotOfTheKernel) {
  const Verdict verdict = Apply(Dialect::kExtended, "p:g/a 1234:0xffffffff81000000").verdict;
  EXPECT_EQ(verdict.code, "BAD_UPROBE_OFFS");
  EXPECT_EQ(verdict.caret, 11);
  EXPECT_NE(verdict.explanation.find("No program has that address"), std::string::npos);
  EXPECT_EQ(Readback("p:g/a 1234:0x100000000000000"), "BAD_UPROBE_OFFS");
  EXPECT_EQ(Readback("p:g/a 1234:0xffffffffffffff"), "p:g/a 1234:0x00ffffffffffffff");
}

// 0xa0, of the UTF-8 letter, is white space for the kernel.
TEST(ExtendedPlace, TakesOctalForWhatEndsAWord) {
  const std::string place = R"(/opt/a\040b\043c/voil)"
                            "\xc3"
                            R"(\240:0x0000000000000010)";
  EXPECT_EQ(Readback("p:g/a " + place), "p:g/a " + place);
  EXPECT_EQ(Readback("p " + place), "p:uprobes/p_voil\xc3_0x10 " + place);
  EXPECT_EQ(Readback(R"(p:g/a /opt/a\134040b:16)"), R"(p:g/a /opt/a\134040b:0x0000000000000010)");
  EXPECT_EQ(Readback(R"(p:g/a /opt/a\040b:16)"), "FILE_NOT_FOUND") << "the file has a backslash";
  DefinitionSet set(Dialect::kExtended);
  FakeFiles files = OneFile();
  EXPECT_TRUE(set.Apply("p:g/a " + place, files).verdict.ok);
  EXPECT_TRUE(set.Apply("-:g/a " + place, files).verdict.ok);
}

TEST(ExtendedPlace, TheKernelsDialectTakesABackslashAsItIs) {
  EXPECT_EQ(Apply(Dialect::kKernel, R"(p:g/a /opt/a\040b:16)").verdict.readback.at(0),
            R"(p:g/a /opt/a\040b:0x0000000000000010)");
}

TEST(ExtendedPlace, ANumberMayStillBeAFile) {
  for (const char* place : {"1234:malloc", "0:0x10", "./1234:0x10", "99999999999:0x10"}) {
    EXPECT_EQ(Readback(std::string("p:g/a ") + place), "FILE_NOT_FOUND") << place;
  }
}

TEST(ExtendedPlace, TheKernelsDialectKnowsNoProcesses) {
  const Verdict verdict = Apply(Dialect::kKernel, "p:g/a 1234:0x7f0012340000 %di").verdict;
  EXPECT_EQ(verdict.code, "PLACE_WITHOUT_PATH");
  EXPECT_EQ(verdict.error_number, EINVAL);
}

TEST(ExtendedPlace, AddressesOfTwoProcessesAreTwoPlaces) {
  DefinitionSet set(Dialect::kExtended);
  FakeFiles files = OneFile();
  files.AddProcess(1235);
  EXPECT_TRUE(set.Apply("p:g/a 1234:0x10", files).verdict.ok);
  EXPECT_TRUE(set.Apply("p:g/a 1235:0x10", files).verdict.ok);
  EXPECT_EQ(set.Apply("p:g/a 1235:0x10", files).verdict.code, "SAME_PROBE");
}

DefinitionSet::Applied ApplyWithSymbol(const std::string& symbol, const std::string& place) {
  DefinitionSet set(Dialect::kExtended);
  FakeFiles files = OneFile();
  files.AddSymbol(symbol, 0x500);
  return set.Apply("p:g/a /bin/x:" + place, files);
}

std::string PlaceOf(const std::string& symbol, const std::string& suffix) {
  const auto applied = ApplyWithSymbol(symbol, symbol + suffix);
  if (!applied.verdict.ok) return applied.verdict.code;
  return applied.verdict.readback.at(0);
}

TEST(ExtendedPlace, TakesSymbolsWithBracketsPercentAndPlus) {
  for (const char* symbol :
       {"main.(*T).Inc", "main.(*T).Inc-fm", "gopkg.in/yaml%2ev3.(*decoder).null", "f(int)", "f()",
        "ns::operator+", "operator++", "operator+=", "operator+(V,V)", "operator()",
        "a<b>::c(d)"}) {
    EXPECT_EQ(PlaceOf(symbol, ""), "p:g/a /bin/x:0x0000000000000500") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "+0x8"), "p:g/a /bin/x:0x0000000000000508") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "(0x20)"), "p:g/a /bin/x:0x0000000000000500(0x20)") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "%return"), "r:g/a /bin/x:0x0000000000000500") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "%return(0x20)"), "r:g/a /bin/x:0x0000000000000500(0x20)") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "%retval"), "BAD_ADDR_SUFFIX") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "(0x20"), "REFCNT_OPEN_BRACE") << symbol;
    EXPECT_EQ(PlaceOf(symbol, "(0x20)x"), "BAD_REFCNT_SUFFIX") << symbol;
  }
}

TEST(ExtendedPlace, KeepsTheSymbolAsTyped) {
  DefinitionSet set(Dialect::kExtended);
  FakeFiles files = OneFile();
  const auto applied = set.Apply("p:g/a /bin/x:malloc+8", files);
  EXPECT_EQ(set.Find(*applied.added)->symbol, "malloc+8");
}

TEST(ExtendedPlace, ShowsTheLookupsError) {
  const Verdict verdict = Apply(Dialect::kExtended, "p:g/a /bin/x:mallok").verdict;
  EXPECT_EQ(verdict.code, "SYMBOL_NOT_FOUND");
  EXPECT_EQ(verdict.error_number, ENOENT);
  EXPECT_EQ(verdict.message, "/bin/x has no symbol mallok");
  EXPECT_EQ(verdict.caret, 13);
  EXPECT_EQ(verdict.explanation, "look at its symbols");
}

TEST(ExtendedPlace, RefusesNonsense) {
  EXPECT_EQ(Readback("p:g/a libc.so.6"), "PLACE_WITHOUT_OFFSET");
  EXPECT_EQ(Readback("p:g/a libc.so.6:"), "PLACE_WITHOUT_OFFSET");
  EXPECT_EQ(Readback("p:g/a ::"), "PLACE_WITHOUT_OFFSET");
  EXPECT_EQ(Readback("p:g/a :::x"), "NO_REGULAR_FILE");
  EXPECT_EQ(Readback("p:g/a /bin/x:malloc+zz"), "BAD_UPROBE_OFFS");
  EXPECT_EQ(Readback("p:g/a /bin/x:(1)"), "BAD_UPROBE_OFFS");
  EXPECT_EQ(Readback("p:g/a /bin/none:malloc"), "FILE_NOT_FOUND");
}

TEST(ExtendedKind, TakesMaxactive) {
  EXPECT_EQ(Readback("r100:g/a /bin/x:16"), "r100:g/a /bin/x:0x0000000000000010");
  EXPECT_EQ(Readback("r0x10 /bin/x:16"), "r16:uprobes/p_x_0x10 /bin/x:0x0000000000000010");
  EXPECT_EQ(Readback("r4096:g/a /bin/x:16"), "r4096:g/a /bin/x:0x0000000000000010");
  EXPECT_EQ(Readback("rx:g/a /bin/x:16"), "r:uprobes/p_x_0x10 /bin/x:0x0000000000000010");
  const Verdict verdict = Apply(Dialect::kExtended, "r4097:g/a /bin/x:16").verdict;
  EXPECT_EQ(verdict.message, "Maxactive is too big");
  EXPECT_EQ(verdict.caret, 1);
  EXPECT_EQ(Readback("r0:g/a /bin/x:16"), "BAD_MAXACT");
  EXPECT_EQ(Readback("r1z:g/a /bin/x:16"), "BAD_MAXACT");
  EXPECT_EQ(Readback("p1:g/a /bin/x:16"), "BAD_MAXACT_TYPE");
}

TEST(ExtendedArguments, AreReadLiveAtEntry) {
  FakeContext context = Hit();
  EXPECT_EQ(
      Text("p", "a=$arg1 b=$arg2 c=$arg3 d=$arg4 e=$arg5 f=$arg6 g=$arg7 h=$arg8 i=$arg9", context),
      "a=0x1 b=0x1000 c=0x5 d=0x4 e=0x5 f=0x6 g=0x7 h=0x8 i=0x0");
  EXPECT_EQ(Recorded(Dialect::kExtended, "p", "$arg3").definition().entry_arguments, 0u);
}

TEST(ExtendedArguments, AreCapturedForReturns) {
  Recorded recorded(Dialect::kExtended, "r", "a=$arg2 s=+0($arg2):string t=+0(%si):bytes($arg8)");
  EXPECT_EQ(recorded.definition().entry_arguments, 8u);
  FakeContext context = Hit();
  context.captured = CaptureEntryArguments(context, 8);
  EXPECT_EQ(context.captured, (std::vector<uint64_t>{1, 0x1000, 5, 4, 5, 6, 7, 8}));
  context.regs[Reg::kDi] = 0xdead;
  EXPECT_EQ(recorded.Text(context), "a=0x1000 s=\"GET /\" t=\"GET /\\x00\\x01\\\"\"");
}

TEST(ExtendedArguments, UnreadableStackIsZero) {
  FakeContext context = Hit();
  EXPECT_EQ(CaptureEntryArguments(context, 10),
            (std::vector<uint64_t>{1, 0x1000, 5, 4, 5, 6, 7, 8, 0, 0}));
  EXPECT_TRUE(CaptureEntryArguments(context, 0).empty());
}

TEST(ExtendedArguments, HaveTheKernelsLimits) {
  FakeContext context;
  EXPECT_EQ(Text("p", "$arg0", context), "BAD_ARG_NUM");
  EXPECT_EQ(Text("p", "$arg2049", context), "BAD_ARG_NUM");
  EXPECT_EQ(Text("p", "$arg*", context), "BAD_VAR");
  EXPECT_EQ(Text("p", "$arg2048", context), "arg1=0x0");
}

TEST(ExtendedFloats, ComeFromVectorsRegistersAndMemory) {
  FakeContext context = Hit();
  const auto double_bits = std::bit_cast<uint64_t>(1.5);
  std::memcpy(context.vectors[0].data(), &double_bits, 8);
  const auto float_bits = std::bit_cast<uint32_t>(0.1f);
  std::memcpy(context.vectors[15].data(), &float_bits, 4);
  const double numbers[] = {0.1, -1e300, 3};
  context.MapObject(0x5000, numbers);
  EXPECT_EQ(Text("p", "a=%xmm0:f64 b=%xmm15:f32 c=%xmm0 d=%xmm15:x32", context),
            "a=1.5 b=0.1 c=0x3ff8000000000000 d=0x3dcccccd");
  EXPECT_EQ(Text("p", "m=@0x5000:f64[3] n=\\0x3f800000:f32", context), "m={0.1,-1e+300,3} n=1");
  EXPECT_EQ(Text("p", "a=%xmm7:f64 b=%xmm7", context), "a=0 b=0x0");
  EXPECT_EQ(Text("p", "%xmm16", context), "BAD_REG_NAME");
  EXPECT_EQ(Text("p", "%xmm00", context), "BAD_REG_NAME");
  EXPECT_EQ(Text("p", "%xmm", context), "BAD_REG_NAME");
  EXPECT_EQ(Text("p", "%xmm+1", context), "BAD_REG_NAME");
}

TEST(ExtendedBytes, HaveTheirLengthFetched) {
  FakeContext context = Hit();
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(%dx)", context), "b=\"GET /\"");
  EXPECT_EQ(Text("p", "b=+5(%si):bytes(\\5)", context), "b=\"\\x00\\x01\\\"\\\\\\xff\"");
  EXPECT_EQ(Text("p", "b=@0x1000:bytes($arg3)", context), "b=\"GET /\"");
  context.regs[Reg::kDx] = 0xffffffff00000003;
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(%dx:s32)", context), "b=\"GET\"");
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(%dx:b1@0/8)", context), "b=\"G\"");
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(+8(%sp):u8)", context), "b=\"GET /\\x00\\x01\"");
}

TEST(ExtendedBytes, AreEmptyForFailedCalls) {
  FakeContext context = Hit();
  context.regs[Reg::kAx] = static_cast<uint64_t>(-1);
  context.captured = {0, 0x1000};
  EXPECT_EQ(Text("r", "b=+0($arg2):bytes($retval)", context), "b=\"\"");
  context.regs[Reg::kAx] = 0xffffffff;  // an int
  EXPECT_EQ(Text("r", "b=+0($arg2):bytes($retval:s32)", context), "b=\"\"");
  context.regs[Reg::kAx] = 0;
  EXPECT_EQ(Text("r", "b=+0(\\0):bytes($retval)", context), "b=\"\"");
  context.regs[Reg::kAx] = 3;
  EXPECT_EQ(Text("r", "b=+0($arg2):bytes($retval)", context), "b=\"GET\"");
}

TEST(ExtendedBytes, FaultAndAreCut) {
  FakeContext context = Hit();
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(\\100)", context), "b=(fault)");
  EXPECT_EQ(Text("p", "b=+0(%si):bytes(+0(\\0))", context), "b=(fault)");
  Recorded recorded(Dialect::kExtended, "p", "b=+0(%si):bytes(\\15)");
  FetchLimits limits;
  limits.max_string = 4;
  const auto values = recorded.Values(context, limits);
  const auto text = std::get<StringValue>(values[0].elements[0]);
  EXPECT_EQ(text.bytes, "GET ");
  EXPECT_TRUE(text.truncated);
}

TEST(ExtendedBytes, HaveOneSpelling) {
  FakeContext context;
  EXPECT_EQ(Text("p", "+0(%si):bytes", context), "BAD_TYPE");
  EXPECT_EQ(Text("p", "+0(%si):bytes(%dx", context), "BAD_TYPE");
  EXPECT_EQ(Text("p", "+0(%si):bytes(%dx)[2]", context), "BAD_TYPE");
  EXPECT_EQ(Text("p", "+0(%si):bytes(%dx:string)", context), "BAD_TYPE");
  EXPECT_EQ(Text("p", "%si:bytes(%dx)", context), "BAD_STRING");
  EXPECT_EQ(Text("p", "$comm:bytes(%dx)", context), "NEED_STRING_TYPE");
  EXPECT_EQ(Text("p", "+0(%si):bytes()", context), "BAD_FETCH_ARG");
  EXPECT_EQ(Text("p", "+0(%si):bytes($comm)", context), "BAD_TYPE");
  const Verdict verdict = Apply(Dialect::kExtended, "p /bin/x:1 b=+0(%si):bytes(%zz)").verdict;
  EXPECT_EQ(verdict.code, "BAD_REG_NAME");
  EXPECT_EQ(verdict.command.substr(*verdict.caret), "%zz)");
}

TEST(ExtendedStrings, AreCutNotLost) {
  FakeContext context = Hit();
  context.Map(0x100000, std::string(5000, 'x') + '\0');
  Recorded recorded(Dialect::kExtended, "p", "s=@0x100000:string");
  const auto cut = std::get<StringValue>(recorded.Values(context)[0].elements[0]);
  EXPECT_EQ(cut.bytes, std::string(4096, 'x'));
  EXPECT_TRUE(cut.truncated);
  FetchLimits limits;
  limits.max_string = 5000;
  const auto whole = std::get<StringValue>(recorded.Values(context, limits)[0].elements[0]);
  EXPECT_EQ(whole.bytes, std::string(5000, 'x'));
  EXPECT_FALSE(whole.truncated);
}

TEST(ExtendedStrings, EndAtOneMebibyte) {
  FakeContext context;
  context.Map(0x100000, std::string(2 << 20, 'x'));
  FetchLimits limits;
  limits.max_string = 0xffffffff;
  Recorded recorded(Dialect::kExtended, "p", "s=@0x100000:string");
  const auto cut = std::get<StringValue>(recorded.Values(context, limits)[0].elements[0]);
  EXPECT_EQ(cut.bytes.size(), 1u << 20);
  EXPECT_TRUE(cut.truncated);
}

TEST(ExtendedStrings, PrintConstants) {
  FakeContext context;
  EXPECT_EQ(Text("p", "a=\\\"hello\" b=\\\"\"", context), "a=\"hello\" b=\"\"");
}

// What the kernel would say, and that it says where to find the feature.
TEST(KernelDialect, RefusesTheExtensions) {
  const struct {
    const char *line, *code;
  } kLines[] = {
      {"p:g/a /bin/x:malloc", "PLACE_WITHOUT_OFFSET"},
      {"p:g/a libc.so.6:malloc", "PLACE_WITHOUT_PATH"},
      {"p:g/a /bin/x:16 $arg1", "NOFENTRY_ARGS"},
      {"p:g/a /bin/x:16 %xmm0", "BAD_REG_NAME"},
      {"p:g/a /bin/x:16 %ax:f64", "BAD_TYPE"},
      {"p:g/a /bin/x:16 +0(%si):bytes(%dx)", "BAD_TYPE"},
  };
  for (const auto& [line, code] : kLines) {
    const Verdict verdict = Apply(Dialect::kKernel, line).verdict;
    EXPECT_FALSE(verdict.ok) << line;
    EXPECT_EQ(verdict.code, code) << line;
    EXPECT_NE(verdict.explanation.find("extended dialect"), std::string::npos) << line;
    EXPECT_TRUE(Apply(Dialect::kExtended, line).verdict.ok) << line;
  }
}

TEST(ExtendedDialect, AllowsLongerExpressions) {
  const std::string argument = "p:g/a /bin/x:16 +" + std::string(100, '0') + "(%di)";
  EXPECT_EQ(Apply(Dialect::kKernel, argument).verdict.code, "ARG_TOO_LONG");
  EXPECT_TRUE(Apply(Dialect::kExtended, argument).verdict.ok);
}

}  // namespace
}  // namespace probed::lang::testing

// Every row of values.tsv: one argument of one hit in target.c, its text and its format lines.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/fake_context.h"
#include "tests/lang/fake_files.h"

namespace probed::lang::testing {
namespace {

enum Column { kId, kArg, kPrinted, kField, kPrint };

// `gs` of target.c, with made-up addresses for its strings.
struct Gs {
  uint8_t u8 = 0xfe;
  int8_t s8 = -2;
  uint16_t u16 = 0xfffe;
  int16_t s16 = -2;
  uint32_t u32 = 0xfffffffe;
  int32_t s32 = -2;
  uint64_t u64 = 0xfffffffffffffffe;
  int64_t s64 = -2;
  uint64_t str = 0x10000;
  uint64_t strs[4] = {0x10100, 0x10200, 0x10300, 0};
  char arr[8] = {'a', 'b', 'c', 'd', 0, 'x', 'y', 'z'};
  char ch = 'Q';
};

FakeContext RecordedHit() {
  FakeContext context;
  context.MapObject(0x20000, Gs{});
  context.Map(0x10000, std::string_view("hello", 6));
  context.Map(0x10100, std::string_view("one", 4));
  context.Map(0x10200, std::string_view("two", 4));
  context.Map(0x10300, std::string_view("three", 6));
  context.Map(0x30000, std::string_view("world", 6));
  context.regs[Reg::kSi] = 0x20000;
  context.regs[Reg::kDx] = 0x30000;
  context.regs[Reg::kCx] = 0x1234567890abcdef;
  context.regs[Reg::kOrigAx] = ~uint64_t{0};
  return context;
}

class ValuesConformance : public ::testing::TestWithParam<Row> {};

TEST_P(ValuesConformance, PrintsAsTheKernel) {
  const Row& row = GetParam();
  FakeFiles files;
  files.AddFile("/bin/x", 1);
  DefinitionSet set(Dialect::kKernel);
  const auto applied = set.Apply("p:kgr/a /bin/x:0x1149 v=" + Unescape(row[kArg]), files);
  ASSERT_TRUE(applied.verdict.ok) << applied.verdict.explanation;
  const Definition& definition = *set.Find(*applied.added);

  FakeContext context = RecordedHit();
  std::vector<std::byte> payload;
  FetchLimits limits;
  limits.kernel_string_rules = true;
  ASSERT_EQ(Fetch(*definition.program, limits, context, payload), FetchOutcome::kRecorded);
  const auto values = DecodePayload(definition.schema, payload);
  ASSERT_TRUE(values.ok()) << values.error().ToString();
  std::string text;
  AppendArguments(definition.schema, *values, text);
  EXPECT_EQ(text, " " + Unescape(row[kPrinted]));

  const std::string format = FormatFile(definition.schema, 1);
  EXPECT_NE(format.find("\n\t" + Unescape(row[kField]) + "\n"), std::string::npos) << format;
  EXPECT_NE(format.find("\nprint fmt: " + Unescape(row[kPrint]) + "\n"), std::string::npos)
      << format;
}

std::string RowName(const ::testing::TestParamInfo<Row>& info) {
  return info.param[kId];
}

INSTANTIATE_TEST_SUITE_P(Row, ValuesConformance,
                         ::testing::ValuesIn(ReadRows("values.tsv", kPrint + 1)), RowName);

TEST(ValuesConformanceData, IsComplete) {
  EXPECT_EQ(ReadRows("values.tsv", kPrint + 1).size(), 42u);
}

}  // namespace
}  // namespace probed::lang::testing

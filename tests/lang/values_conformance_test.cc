// Every row of values.tsv: one argument of one hit in target.c, its text and its format lines.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/payload.h"
#include "engine/lang/print.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/fake_files.h"
#include "tests/lang/recorded_hit.h"

namespace probed::lang::testing {
namespace {

enum Column { kId, kArg, kPrinted, kField, kPrint };

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

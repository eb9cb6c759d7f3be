// Every row of filters.tsv: what the kernel said to a filter and which of four hits it let through.

#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "engine/lang/definition_set.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/filter.h"
#include "tests/lang/conformance_rows.h"
#include "tests/lang/fake_files.h"
#include "tests/lang/recorded_hit.h"

namespace probed::lang::testing {
namespace {

enum Column { kId, kFilter, kVerdict, kErrno, kMessage, kPosition, kFile, kHits };

const std::map<std::string, int> kErrors = {
    {"", 0}, {"EPERM", EPERM}, {"ENOENT", ENOENT}, {"ESRCH", ESRCH}, {"EINVAL", EINVAL}};

// The event of the file's head.
constexpr const char* kEvent =
    "p:kgr/f /bin/x:0x1149 i=%di:s32 u=%di:u64 x=%cx str=+0(%dx):string c=+80(%si):char "
    "ca=+72(%si):char[8] sa=+40(%si):string[2] b=+0(%si):u8 s=+1(%si):s8 comm=$comm";

class FilterConformance : public ::testing::TestWithParam<Row> {
 protected:
  FilterConformance() : set_(Dialect::kKernel) {
    FakeFiles files;
    files.AddFile("/bin/x", 1);
    definition_ = set_.Find(set_.Apply(kEvent, files).added.value());
  }

  // "0,2", the hits that pass, or "-".
  std::string Hits(const FilterCode& code) {
    std::string hits;
    for (uint64_t i = 0; i < 4; ++i) {
      FakeContext context = RecordedHit();
      context.regs[Reg::kDi] = i;
      std::vector<std::byte> payload;
      FetchLimits limits;
      limits.kernel_string_rules = true;
      EXPECT_EQ(Fetch(*definition_->program, limits, context, payload), FetchOutcome::kRecorded);
      const FilterHit hit{payload, context.comm(), 0x401149, 0x401149, 4711, 1, 2331};
      if (Passes(code, hit)) hits += (hits.empty() ? "" : ",") + std::to_string(i);
    }
    return hits.empty() ? "-" : hits;
  }

  DefinitionSet set_;
  std::shared_ptr<const Definition> definition_;
};

TEST_P(FilterConformance, IsJudgedAndRunAsByTheKernel) {
  const Row& row = GetParam();
  const auto filter =
      CompileFilter(Unescape(row[kFilter]), definition_->schema, {Dialect::kKernel, 2});
  ASSERT_EQ(filter.has_value(), row[kVerdict] == "accept");
  if (filter) {
    EXPECT_EQ(FilterFile(*filter), Unescape(row[kFile]));
    EXPECT_EQ(Hits(filter->code), row[kHits]);
    return;
  }
  EXPECT_EQ(filter.error().error_number, kErrors.at(row[kErrno]));
  EXPECT_EQ(MessageOf(filter.error().error), row[kMessage]);
  EXPECT_EQ(std::to_string(filter.error().position), row[kPosition]);
  EXPECT_EQ(FilterFile(filter.error()), Unescape(row[kFile]));
}

// Nobody depends on the kernel's oddities; what the rows show is the same in both dialects.
TEST_P(FilterConformance, IsTheSameInTheExtendedDialect) {
  const Row& row = GetParam();
  const auto filter =
      CompileFilter(Unescape(row[kFilter]), definition_->schema, {Dialect::kExtended, 2});
  ASSERT_EQ(filter.has_value(), row[kVerdict] == "accept");
  const std::string file = filter ? FilterFile(*filter) : FilterFile(filter.error());
  EXPECT_EQ(file, Unescape(row[kFile]));
  if (filter) {
    EXPECT_EQ(Hits(filter->code), row[kHits]);
  }
}

std::string RowName(const ::testing::TestParamInfo<Row>& info) {
  return info.param[kId];
}

INSTANTIATE_TEST_SUITE_P(Row, FilterConformance,
                         ::testing::ValuesIn(ReadRows("filters.tsv", kHits + 1)), RowName);

TEST(FilterConformanceData, IsComplete) {
  EXPECT_EQ(ReadRows("filters.tsv", kHits + 1).size(), 76u);
}

}  // namespace
}  // namespace probed::lang::testing

// Filters at hits: what passes is recorded, what does not is counted, and the program's own counter
// agrees.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

class FilterTest : public EngineTest {
 protected:
  // An entry probe with the number of the call and the text.
  std::string Entry(const std::string& name = "x") {
    return fmt::format("p:t/{} {}:work n=%di:s32 text=+0(%si):string", name, puppet_.path());
  }
  ProbeId DefineFiltered(const std::string& line, const std::string& filter) {
    auto created = Create(target_, {line}, {.filter = filter});
    return created.empty() ? 0 : created.front().id;
  }
  std::vector<uint64_t> Numbers() {
    std::vector<uint64_t> numbers;
    for (const auto& hit : DrainHits())
      numbers.push_back(First(hit));
    return numbers;
  }
  void ExpectCounters(ProbeId id, uint64_t recorded, uint64_t filtered) {
    const ProbeCounters counters = Counters(id);
    EXPECT_EQ(counters.recorded, recorded);
    EXPECT_EQ(counters.filtered, filtered);
    EXPECT_EQ(counters.hits, recorded + filtered + counters.missed);
  }

  Puppet puppet_{"counter"};
  TargetId target_ = Attach(puppet_);
};

TEST_F(FilterTest, RecordsWhatPassesAndCountsTheRest) {
  const ProbeId id = DefineFiltered(Entry(), "n >= 3 && n < 5 || n == 9");
  EXPECT_EQ(puppet_.Ask("10"), "10 1130");
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{3, 4, 9}));
  ExpectCounters(id, 3, 7);
  EXPECT_EQ(Detach(target_).warning, "");
}

TEST_F(FilterTest, ChangesWhileTheProbeLives) {
  const ProbeId id = Define(target_, Entry());
  EXPECT_FALSE(engine_->SetFilter(id, " n & 1 "));
  EXPECT_EQ(engine_->GetProbe(id)->filter, " n & 1");
  puppet_.Ask("4");
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{1, 3}));
  EXPECT_FALSE(engine_->SetFilter(id, "text ~ \"*x*\""));
  puppet_.Ask("4");
  EXPECT_TRUE(Numbers().empty());
  EXPECT_FALSE(engine_->SetFilter(id, "0"));
  EXPECT_EQ(engine_->GetProbe(id)->filter, "");
  puppet_.Ask("4");
  EXPECT_EQ(Numbers().size(), 4u);
  ExpectCounters(id, 6, 6);
}

TEST_F(FilterTest, KnowsTheHit) {
  const ProbeId id =
      DefineFiltered(Entry(), fmt::format("common_pid == {} && COMM == 'counter' && CPU >= 0 && "
                                          "text == 'hello world' && common_type != 0",
                                          puppet_.pid()));
  const auto address = engine_->ListSites(target_).front().address;
  EXPECT_FALSE(engine_->SetFilter(
      id, engine_->GetProbe(id)->filter + fmt::format(" && __probe_ip == {:#x}", address)));
  puppet_.Ask("3");
  ExpectCounters(id, 3, 0);
  EXPECT_FALSE(engine_->SetFilter(id, fmt::format("common_pid != {}", puppet_.pid())));
  puppet_.Ask("3");
  ExpectCounters(id, 3, 3);
}

TEST_F(FilterTest, FiltersReturnsByTheirValue) {
  const std::string line = fmt::format("r:t/r {}:work value=$retval", puppet_.path());
  const ProbeId id = DefineFiltered(line, "value > 108");  // 2 * n + 'h'
  puppet_.Ask("6");
  EXPECT_EQ(Numbers(), (std::vector<uint64_t>{110, 112, 114}));
  ExpectCounters(id, 3, 3);
}

TEST_F(FilterTest, HoldsForEachProbeOfOneSite) {
  const ProbeId all = Define(target_, Entry("all"));
  const ProbeId odd = DefineFiltered(Entry("odd"), "n & 1");
  const ProbeId none = DefineFiltered(Entry("none"), "n < 0");
  puppet_.Ask("6");
  ExpectCounters(all, 6, 0);
  ExpectCounters(odd, 3, 3);
  ExpectCounters(none, 0, 6);
  EXPECT_EQ(DrainHits().size(), 9u);
}

TEST_F(FilterTest, RefusesAsTheKernelAndChangesNothing) {
  auto outcome =
      engine_->CreateProbes(target_, {Entry("a"), Entry("b")}, {.filter = "n == 1 && m"});
  ASSERT_TRUE(outcome.ok());
  ASSERT_EQ(outcome->errors.size(), 2u);
  const LineError& refused = outcome->errors.back();
  EXPECT_EQ(refused.line, 1u);
  EXPECT_TRUE(refused.in_filter);
  EXPECT_EQ(refused.error.reason, "FIELD_NOT_FOUND");
  EXPECT_EQ(refused.verdict.message, "Field not found");
  EXPECT_EQ(refused.verdict.caret, 12);
  EXPECT_EQ(refused.verdict.error_number, EINVAL);
  EXPECT_NE(refused.verdict.explanation.find("n, text"), std::string::npos);
  EXPECT_TRUE(engine_->ListProbes(target_).empty());

  const ProbeId id = DefineFiltered(Entry("a"), "n == 1");
  const auto later = engine_->SetFilter(id, "n == 1)");
  ASSERT_TRUE(later);
  EXPECT_EQ(later->verdict.error_number, EPERM);
  EXPECT_EQ(engine_->GetProbe(id)->filter, "n == 1");
  puppet_.Ask("4");
  ExpectCounters(id, 1, 3);
  EXPECT_EQ(engine_->SetFilter(id + 100, "n == 1")->error.reason, "PROBE_NOT_FOUND");
}

TEST_F(FilterTest, EachDialectHasItsOwnAnswers) {
  auto file = engine_->Explain(target_, puppet_.path() + ":work");
  ASSERT_TRUE(file.ok());
  const std::string line =
      fmt::format("p:t/k {}:{:#x} n=%di:s32 three=+0(%si):u8[3]", puppet_.path(), file->offset);
  auto kernel = Create(target_, {line}, {.dialect = lang::Dialect::kKernel, .filter = "three==1"});
  ASSERT_EQ(kernel.size(), 1u);
  puppet_.Ask("2");
  ExpectCounters(kernel.front().id, 0, 2);
  ASSERT_TRUE(engine_->DeleteProbes({kernel.front().id}).ok());
  auto extended = engine_->CreateProbes(target_, {line}, {.filter = "three==1"});
  ASSERT_EQ(extended->errors.size(), 1u);
  EXPECT_EQ(extended->errors.front().error.reason, "ILLEGAL_FIELD_OP");
}

}  // namespace
}  // namespace probed::engine

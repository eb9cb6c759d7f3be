// What the recorded rows do not show of filters: the extended dialect's answers, the compiled form,
// limits, and texts that no one would write.

#include <gtest/gtest.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <random>

#include "engine/lang/filter.h"
#include "engine/lang/filter_cpus.h"
#include "engine/lang/filter_pattern.h"
#include "engine/lang/payload.h"

namespace probed::lang::testing {
namespace {

// An event and one payload of it.
class Sample {
 public:
  Sample() { schema_.kind = ProbeKind::kEntry; }

  template <class T>
  void Number(const std::string& name, BaseType base, T value) {
    Add(name, base, 1, &value, sizeof(value));
  }
  template <class T>
  void Array(const std::string& name, BaseType base, const std::vector<T>& values) {
    Add(name, base, values.size(), values.data(), values.size() * sizeof(T));
    schema_.fields.back().type.is_array = true;
  }
  // Texts are put behind the fixed part by Payload().
  void Text(const std::string& name, std::optional<std::string> text) {
    const uint32_t slot[2] = {0, kFaultSlot};
    Add(name, BaseType::kString, 1, slot, sizeof(slot));
    texts_.emplace_back(schema_.fields.back().offset, std::move(text));
  }

  EventSchema schema() const { return schema_; }
  std::vector<std::byte> Payload() const {
    std::vector<std::byte> payload = fixed_;
    for (const auto& [offset, text] : texts_) {
      if (!text) continue;
      const uint32_t slot[2] = {static_cast<uint32_t>(payload.size()),
                                static_cast<uint32_t>(text->size())};
      std::memcpy(payload.data() + offset, slot, sizeof(slot));
      const auto bytes = std::as_bytes(std::span(*text));
      payload.insert(payload.end(), bytes.begin(), bytes.end());
    }
    return payload;
  }

 private:
  void Add(const std::string& name, BaseType base, size_t count, const void* data, size_t size) {
    FieldSchema field;
    field.name = name;
    field.type.base = base;
    field.type.count = static_cast<uint16_t>(count);
    field.offset = static_cast<uint32_t>(fixed_.size());
    field.size = static_cast<uint32_t>(size);
    schema_.fields.push_back(field);
    const auto* bytes = static_cast<const std::byte*>(data);
    fixed_.insert(fixed_.end(), bytes, bytes + size);
    schema_.fixed_size = static_cast<uint32_t>(fixed_.size());
  }

  EventSchema schema_;
  std::vector<std::byte> fixed_;
  std::vector<std::pair<uint32_t, std::optional<std::string>>> texts_;
};

Sample MakeSample() {
  Sample sample;
  sample.Number<int32_t>("i", BaseType::kS32, -2);
  sample.Number<uint64_t>("u", BaseType::kU64, 7);
  sample.Number<float>("f", BaseType::kF32, 1.5f);
  sample.Number<double>("d", BaseType::kF64, -0.25);
  sample.Array<uint8_t>("a3", BaseType::kU8, {1, 2, 3});
  sample.Array<uint8_t>("a4", BaseType::kU8, {1, 0, 0, 0});
  sample.Array<float>("f2", BaseType::kF32, {1, 2});
  sample.Text("str", "3 blind mice");
  sample.Text("empty", "");
  sample.Text("fault", std::nullopt);
  return sample;
}

// "yes", "no", or why not.
std::string Ask(std::string_view text, Dialect dialect = Dialect::kExtended) {
  const Sample sample = MakeSample();
  const auto filter = CompileFilter(text, sample.schema(), {dialect, 4});
  if (!filter) return std::string(NameOf(filter.error().error));
  const auto payload = sample.Payload();
  const FilterHit hit{payload, "worker", 0x401000, 0x401000, 4711, 3, 12};
  return Passes(filter->code, hit) ? "yes" : "no";
}

TEST(Filter, ReadsCommonFields) {
  EXPECT_EQ(Ask("common_pid == 4711 && common_type == 12 && __probe_ip == 0x401000"), "yes");
  EXPECT_EQ(Ask("common_flags == 0 && common_preempt_count == 0"), "yes");
  EXPECT_EQ(Ask("CPU == 3 && cpu == 3 && common_cpu == 3"), "yes");
  EXPECT_EQ(Ask("COMM == 'worker' && comm ~ \"w*r\""), "yes");
  EXPECT_EQ(Ask("__probe_func == 1"), "FIELD_NOT_FOUND");
}

TEST(Filter, KnowsTheFieldsOfReturns) {
  EventSchema schema;
  schema.kind = ProbeKind::kReturn;
  const FilterHit hit{{}, "", 0x1234, 0x1000, 1, 0, 1};
  const auto filter = CompileFilter("__probe_func==0x1000 && __probe_ret_ip==0x1234", schema, {});
  ASSERT_TRUE(filter);
  EXPECT_TRUE(Passes(filter->code, hit));
  EXPECT_FALSE(CompileFilter("__probe_ip==1", schema, {}));
}

TEST(Filter, PrefersTheEventsOwnFields) {
  Sample sample;
  sample.Number<uint32_t>("CPU", BaseType::kU32, 77);
  const auto payload = sample.Payload();
  const auto filter = CompileFilter("CPU==77", sample.schema(), {});
  ASSERT_TRUE(filter);
  EXPECT_TRUE(Passes(filter->code, {payload, "", 0, 0, 0, 1, 0}));
}

TEST(Filter, ExtendedDialectRefusesWhatHasNoComparison) {
  for (const char* text : {"a3==1", "a3!=1", "a3==CPUS{1}", "f2>1", "STACKTRACE==1"}) {
    EXPECT_EQ(Ask(text), "ILLEGAL_FIELD_OP") << text;
    EXPECT_EQ(Ask(text, Dialect::kKernel), "no") << text;
  }
  EXPECT_EQ(Ask("a4==1"), "yes");
  EXPECT_EQ(Ask("f & 1"), "ILLEGAL_FIELD_OP");
  EXPECT_EQ(Ask("f & CPUS{0-1}"), "ILLEGAL_FIELD_OP");
}

TEST(Filter, ExtendedDialectSearchesWhereTheKernelDoesNot) {
  EXPECT_EQ(Ask("COMM ~ '*ker'"), "yes");
  EXPECT_EQ(Ask("COMM ~ '*ker'", Dialect::kKernel), "no");
  EXPECT_EQ(Ask("str ~ '3*'"), "yes");
  EXPECT_EQ(Ask("str ~ '3*'", Dialect::kKernel), "no");
  EXPECT_EQ(Ask("CPU & 2"), "yes");
  EXPECT_EQ(Ask("CPU & 2", Dialect::kKernel), "no");
}

TEST(Filter, ComparesFloats) {
  EXPECT_EQ(Ask("f == 1.5 && f > 1 && f < 2e0 && f >= 15e-1 && f != 1"), "yes");
  EXPECT_EQ(Ask("d == -0.25 && d < 0 && d > -1"), "yes");
  EXPECT_EQ(Ask("f == 1.5.2"), "TOO_MANY_PREDS");
  EXPECT_EQ(Ask("f == 1x"), "ILLEGAL_INTVAL");
  EXPECT_EQ(Ask("f == -"), "ILLEGAL_INTVAL");
  EXPECT_EQ(Ask("u == 1.5"), "TOO_MANY_PREDS");
}

TEST(Filter, FloatsWithoutOrderMatchNothing) {
  Sample sample;
  sample.Number<double>("d", BaseType::kF64, std::numeric_limits<double>::quiet_NaN());
  const auto payload = sample.Payload();
  for (const char* text : {"d==0", "d<0", "d>=0"}) {
    const auto filter = CompileFilter(text, sample.schema(), {});
    ASSERT_TRUE(filter);
    EXPECT_FALSE(Passes(filter->code, {payload, "", 0, 0, 0, 0, 0})) << text;
  }
}

// A string that could not be read is empty, but for '*', which needs one to look at.
TEST(Filter, TellsUnreadableFromEmpty) {
  EXPECT_EQ(Ask("fault == ''"), "yes");
  EXPECT_EQ(Ask("fault ~ '*'"), "no");
  EXPECT_EQ(Ask("empty == '' && empty ~ '*'"), "yes");
}

TEST(Filter, BindsTighterByAnd) {
  EXPECT_EQ(Ask("u==7 || u==7 && u==8"), "yes");
  EXPECT_EQ(Ask("(u==7 || u==7) && u==8"), "no");
  EXPECT_EQ(Ask("u==8 && u==7 || u==7"), "yes");
  EXPECT_EQ(Ask("!(u==8 && u==7) && !(u==8 || u==9)"), "yes");
  EXPECT_EQ(Ask("!(!(u==7))"), "yes");
  EXPECT_EQ(Ask("!!u==7"), "yes");
}

TEST(Filter, IgnoresAnOperatorAtTheEnd) {
  for (const char* text : {"u==7 &&", "u==7 || ", "u==8 || u==7 &&", "u==7 && !"}) {
    EXPECT_EQ(Ask(text), "yes") << text;
  }
  for (const char* text : {"u==8 &&", "u==8 ||", "u==8 || u==9 &&"}) {
    EXPECT_EQ(Ask(text), "no") << text;
  }
}

TEST(Filter, ClearsWithZero) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text : {"0"sv, " 0\n"sv, "\t0 \t"sv, "0\0junk"sv}) {
    const auto filter = CompileFilter(text, EventSchema(), {});
    ASSERT_TRUE(filter);
    EXPECT_EQ(FilterFile(*filter), "none\n");
    EXPECT_TRUE(Passes(filter->code, {}));
  }
}

TEST(Filter, LeavesTooLongTextsAlone) {
  const std::string text = "CPU>=0" + std::string(4096 - 6, ' ');
  const auto refused = CompileFilter(text, EventSchema(), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error, FilterError::kTooLong);
  EXPECT_TRUE(CompileFilter(std::string_view(text).substr(0, 4095), EventSchema(), {}));
}

TEST(Filter, NestsAsDeepAsTheTextIsLong) {
  for (const std::string_view open : {"(", "!("}) {
    std::string text = "u==7";
    for (int i = 0; i < 1000; ++i)
      text.insert(0, open).push_back(')');
    EXPECT_EQ(Ask(text), "yes");
  }
}

// A reader that goes forward only ends; the places are those of the text.
TEST(Filter, JumpsForwardOnly) {
  const auto filter =
      CompileFilter("(u==1 || i==2 && !(u>3 || i<4)) && f<1 || !(u==5)", MakeSample().schema(), {});
  ASSERT_TRUE(filter);
  const FilterCode& code = filter->code;
  ASSERT_EQ(code.ops.size(), 6u);
  for (uint32_t i = 0; i < code.ops.size(); ++i) {
    EXPECT_GT(code.ops[i].if_true, i);
    EXPECT_GT(code.ops[i].if_false, i);
    EXPECT_LE(code.ops[i].if_true, code.drop());
    EXPECT_LE(code.ops[i].if_false, code.drop());
  }
  EXPECT_EQ(code.ops[0].if_true, 4u);   // on to f<1
  EXPECT_EQ(code.ops[0].if_false, 1u);  // on to i==2
  EXPECT_EQ(code.ops[2].if_true, 5u);   // the inner || is negated: on to !(u==5)
  EXPECT_EQ(code.ops[4].if_true, code.pass());
  EXPECT_EQ(code.ops[5].if_true, code.drop());
}

TEST(Filter, SurvivesAnyBytes) {
  std::mt19937 random(20261129);
  constexpr std::string_view kBytes = "iuf=!<>&|~()'\"{}CPUS0123-*?[]\\. \t\xa0";
  const Sample sample = MakeSample();
  const auto payload = sample.Payload();
  for (int n = 0; n < 20'000; ++n) {
    std::string text;
    for (size_t length = random() % 24; length > 0; --length)
      text += kBytes[random() % kBytes.size()];
    const auto filter = CompileFilter(text, sample.schema(), {Dialect::kExtended, 4});
    static_cast<void>(filter ? FilterFile(*filter) : FilterFile(filter.error()));
    if (filter) Passes(filter->code, {payload, "worker", 1, 1, 1, 0, 0});
  }
}

TEST(Filter, TrustsNoPayload) {
  const auto filter = CompileFilter("u==7 || str ~ '*x*' || a4==1", MakeSample().schema(), {});
  ASSERT_TRUE(filter);
  std::vector<std::byte> payload = MakeSample().Payload();
  for (std::byte& byte : payload)
    byte = std::byte{0x7f};
  for (size_t size = 0; size <= payload.size(); ++size) {
    EXPECT_FALSE(Passes(filter->code, {std::span(payload).first(size), "", 0, 0, 0, 0, 0}));
  }
}

TEST(FilterPattern, MatchesGlobs) {
  EXPECT_TRUE(GlobMatches("w[a-p]r*d", "world"));
  EXPECT_TRUE(GlobMatches("*a*b*c", "xxaybzc"));
  EXPECT_FALSE(GlobMatches("*a*b*c", "xxaybzcd"));
  EXPECT_TRUE(GlobMatches("[]]x", "]x"));
  EXPECT_TRUE(GlobMatches("[a-]x", "-x"));
  EXPECT_FALSE(GlobMatches("[!a]x", "ax"));
  EXPECT_TRUE(GlobMatches("[ab", "[ab"));
  EXPECT_TRUE(GlobMatches("a\\*b", "a*b"));
  EXPECT_FALSE(GlobMatches("a\\*b", "axb"));
  EXPECT_TRUE(GlobMatches("ab\\", "ab"));
  EXPECT_FALSE(GlobMatches("?", ""));
  EXPECT_TRUE(GlobMatches("", ""));
  const std::string many(200, 'a');
  EXPECT_FALSE(GlobMatches("*a*a*a*a*a*a*a*a*b", many)) << "without trying every split";
}

TEST(FilterCpus, ReadsLists) {
  EXPECT_EQ(ParseCpuList("0,2-3", 4), FilterSet{0b1101});
  EXPECT_EQ(ParseCpuList("all", 70), (FilterSet{~uint64_t{0}, 0b111111}));
  EXPECT_EQ(ParseCpuList("0-7:2/4", 8), FilterSet{0b00110011});
  EXPECT_EQ(ParseCpuList("N", 4), FilterSet{0b1000});
  EXPECT_EQ(ParseCpuList("4", 4), std::nullopt);
  EXPECT_EQ(ParseCpuList("3-1", 4), std::nullopt);
  EXPECT_EQ(ParseCpuList("0-3:2/0", 4), std::nullopt);
}

}  // namespace
}  // namespace probed::lang::testing

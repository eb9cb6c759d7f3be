// A hit passes a filter in machine code exactly when it passes in the interpreter; and one in N.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/lang/fetch_program.h"
#include "engine/lang/filter.h"
#include "engine/lang/filter_pattern.h"
#include "engine/lang/payload.h"
#include "engine/ring/clock.h"
#include "tests/detour/random_hit.h"

namespace probed::detour::testing {
namespace {

constexpr uint16_t kEventId = 1234;

using lang::FetchOp;
using lang::FetchOpcode;
using lang::FilterOp;
using lang::FilterOperand;
using lang::FilterTest;

class FilterDetourTest : public RandomHit, public ::testing::WithParamInterface<int> {
 protected:
  FilterDetourTest() : RandomHit(static_cast<uint64_t>(GetParam()) + 1000) {}

  static std::vector<std::byte> Payload(const DetourProbe& probe,
                                        lang::testing::SelfContext context) {
    std::vector<std::byte> payload;
    lang::Fetch(*probe.program, probe.limits, context, payload);
    return payload;
  }

  // A filter over the fields of `program`, comparing with values near those of `payload`.
  lang::FilterCode SomeFilter(const lang::FetchCode& program, std::span<const std::byte> payload);
  bool AimAtField(const lang::FetchCode& program, std::span<const std::byte> payload,
                  lang::FilterCode& filter, FilterOp& op);
  void AimAtText(const FetchOp& store, std::span<const std::byte> payload, lang::FilterCode& filter,
                 FilterOp& op);
  void AimAtFloat(uint64_t value, FilterOp& op);
  void AimElsewhere(lang::FilterCode& filter, FilterOp& op);
  lang::FilterPattern SomePattern(std::string text);

  uint64_t passed_ = 0;
  uint64_t dropped_ = 0;
  uint64_t refused_ = 0;
};

// Matches `text`, or nearly.
lang::FilterPattern FilterDetourTest::SomePattern(std::string text) {
  const auto place = [&] { return memory_.Below(text.size() + 1); };
  if (memory_.OneIn(3)) text = text.substr(memory_.Below(text.size() + 1));
  if (memory_.OneIn(3)) text.resize(memory_.Below(text.size() + 1));
  constexpr std::string_view kInsertions[] = {"*", "?", "[a-z]", "[!x]", "\\", "**", "[", "[^]-]"};
  for (uint64_t i = memory_.Below(4); i > 0; --i) {
    const std::string_view inserted = kInsertions[memory_.Below(std::size(kInsertions))];
    const size_t at = place();
    const size_t replaced = inserted == "*" ? memory_.Below(6) : memory_.Below(2);
    text.replace(at, std::min(replaced, text.size() - at), inserted);
  }
  if (memory_.OneIn(2)) text.insert(0, "*");
  if (memory_.OneIn(2)) text += '*';
  return lang::ParsePattern(text, false).pattern;
}

void FilterDetourTest::AimAtText(const FetchOp& store, std::span<const std::byte> payload,
                                 lang::FilterCode& filter, FilterOp& op) {
  op.test = FilterTest::kText;
  op.number = lang::FilterNumber::kUnsigned;
  op.size = 8;
  op.index = static_cast<uint16_t>(filter.patterns.size());
  uint32_t slot[2];
  std::memcpy(slot, payload.data() + store.slot, sizeof(slot));
  std::string text = memory_.OneIn(2) ? "text" : "";
  if (slot[1] != lang::kFaultSlot) {
    const auto* data = reinterpret_cast<const char*>(payload.data()) + slot[0];
    text.assign(data, std::min(slot[1] & ~lang::kTruncatedBit, 200u));
    if (memory_.OneIn(4) && !text.empty()) text.back() ^= 1;
    if (memory_.OneIn(8) && !text.empty()) text.pop_back();
  }
  if (memory_.OneIn(2)) return filter.patterns.push_back(SomePattern(std::move(text)));
  filter.patterns.push_back({.kind = lang::FilterPattern::Kind::kWhole, .text = std::move(text)});
}

// Near the field's own number, or one that is special.
void FilterDetourTest::AimAtFloat(uint64_t value, FilterOp& op) {
  constexpr double kSpecial[] = {0.0,
                                 -0.0,
                                 1e-310,
                                 std::numeric_limits<double>::infinity(),
                                 -std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN(),
                                 1e300};
  op.number = lang::FilterNumber::kFloat;
  op.test = static_cast<FilterTest>(1 + memory_.Below(5));
  double number = std::bit_cast<double>(value);
  if (op.size == 4) number = std::bit_cast<float>(static_cast<uint32_t>(value));
  if (memory_.OneIn(4)) number = kSpecial[memory_.Below(std::size(kSpecial))];
  if (memory_.OneIn(4)) number = std::nextafter(number, memory_.OneIn(2) ? 1e308 : -1e308);
  op.value = std::bit_cast<uint64_t>(number);
}

void FilterDetourTest::AimElsewhere(lang::FilterCode& filter, FilterOp& op) {
  constexpr FilterOperand kOperands[] = {FilterOperand::kZero, FilterOperand::kIp,
                                         FilterOperand::kEventId, FilterOperand::kFunction};
  op.operand = kOperands[memory_.Below(std::size(kOperands))];
  op.value = memory_.OneIn(2) ? kEventId : 0;
  if (op.test == FilterTest::kInSet) filter.sets.back().assign(1 + memory_.Below(16), ~uint64_t{0});
}

bool FilterDetourTest::AimAtField(const lang::FetchCode& program,
                                  std::span<const std::byte> payload, lang::FilterCode& filter,
                                  FilterOp& op) {
  if (program.fields.empty()) return false;
  const auto some_store = [&] {
    return program.ops[program.fields[memory_.Below(program.fields.size())].end - 1];
  };
  FetchOp store = some_store();
  for (int i = 0; i < 4 && store.code != FetchOpcode::kStoreString; ++i)
    store = some_store();
  if (store.count != 1) return false;
  op.operand = FilterOperand::kField;
  op.offset = store.slot;
  if (store.code == FetchOpcode::kStoreString || store.code == FetchOpcode::kStoreLiteral) {
    AimAtText(store, payload, filter, op);
    return true;
  }
  if (store.code != FetchOpcode::kStoreValue && store.code != FetchOpcode::kStoreMemory) {
    return false;
  }
  op.size = store.size;
  uint64_t value = 0;
  std::memcpy(&value, payload.data() + store.slot, store.size);
  if (op.size >= 4 && memory_.OneIn(4)) {
    AimAtFloat(value, op);
    return true;
  }
  if (memory_.OneIn(8)) op.size = static_cast<uint8_t>(1u << memory_.Below(4));
  if (op.size > store.size) op.size = store.size;
  value += memory_.Below(3) - 1;
  const unsigned unused = 64u - 8u * op.size;
  op.value = op.number == lang::FilterNumber::kSigned
                 ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused)
                 : value << unused >> unused;
  return true;
}

lang::FilterCode FilterDetourTest::SomeFilter(const lang::FetchCode& program,
                                              std::span<const std::byte> payload) {
  lang::FilterCode filter;
  const auto count = static_cast<uint32_t>(1 + memory_.Below(5));
  for (uint32_t i = 0; i < count; ++i) {
    FilterOp op;
    op.test = static_cast<FilterTest>(memory_.Below(8));
    op.number = memory_.OneIn(2) ? lang::FilterNumber::kSigned : lang::FilterNumber::kUnsigned;
    if (op.test == FilterTest::kInSet) {
      op.index = static_cast<uint16_t>(filter.sets.size());
      filter.sets.push_back({memory_.random()()});
    }
    if (!AimAtField(program, payload, filter, op)) {
      AimElsewhere(filter, op);
    }
    op.if_true = i + 1 + static_cast<uint32_t>(memory_.Below(count + 1 - i));
    op.if_false = i + 1 + static_cast<uint32_t>(memory_.Below(count + 1 - i));
    filter.ops.push_back(op);
  }
  return filter;
}

TEST_P(FilterDetourTest, RandomFilters) {
  ProgramGenerator generator(memory_);
  for (int round = 0; round < 500; ++round) {
    const lang::FetchProgram program = generator.Next();
    const Registers before = SomeRegisters();
    DetourProbe probe{.program = &program, .limits = SomeLimits(), .file_base = kFileBase};
    probe.event_id = kEventId;
    const lang::FilterCode filter =
        SomeFilter(program.code(), Payload(probe, ContextOf(before, 0)));
    probe.filter = &filter;
    InstalledDetour installed(ring_, {&probe, 1}, kFunction);
    if (!installed.refusal().empty()) {
      ++refused_;
      continue;
    }

    Registers after = before;
    RunAt(after, installed.original());
    lang::testing::SelfContext context = ContextOf(before, installed.site());
    std::vector<std::byte> payload;
    if (lang::Fetch(program, probe.limits, context, payload) == lang::FetchOutcome::kDropped) {
      continue;
    }
    const lang::FilterHit hit{.payload = payload,
                              .comm = {},
                              .ip = installed.site(),
                              .function = installed.site(),
                              .event_id = kEventId};
    const bool passes = lang::Passes(filter, hit);
    const uint64_t filtered = ring_.counters(0).filtered;
    Registers registers = before;
    installed.Run(registers);
    ASSERT_EQ(registers, after);
    std::vector<Record> records = ring_.TakeRecords();
    std::erase_if(records, [](const Record& record) { return record.header.probe != 0; });
    ASSERT_EQ(records.size(), passes ? 1u : 0u);
    ASSERT_EQ(ring_.counters(0).filtered - filtered, passes ? 0u : 1u);
    if (passes) {
      ASSERT_EQ(records[0].payload, payload);
    }
    ++(passes ? passed_ : dropped_);
  }
  EXPECT_GT(passed_, 100u);
  EXPECT_GT(dropped_, 100u);
  EXPECT_LT(refused_, 50u);
}

TEST_P(FilterDetourTest, OneInSoMany) {
  const lang::FetchProgram program{lang::FetchCode{}};
  const auto every = static_cast<uint32_t>(GetParam() + 2);
  const DetourProbe probe{.program = &program, .limits = {}, .sampling = {.every = every}};
  InstalledDetour installed(ring_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  constexpr uint32_t kCalls = 1000;
  for (uint32_t i = 0; i < kCalls; ++i) {
    Registers registers = SomeRegisters();
    installed.Run(registers);
  }
  const uint64_t recorded = ring_.TakeRecords().size();
  EXPECT_EQ(recorded, (kCalls + every - 1) / every);
  EXPECT_EQ(ring_.counters(0).sampled_out, kCalls - recorded);
  EXPECT_EQ(ring_.counters(0).filtered, 0u);
}

class RateTest : public RandomHit {
 protected:
  static constexpr uint32_t kLimit = 7;
  static constexpr uint32_t kCalls = 100;

  RateTest() : RandomHit(1) {}
  uint64_t Recorded(const ring::Sampling& sampling, uint64_t seconds_per_tick) {
    const lang::FetchProgram program{lang::FetchCode{}};
    const DetourProbe probe{.program = &program,
                            .limits = {},
                            .sampling = sampling,
                            .seconds_per_tick = seconds_per_tick};
    InstalledDetour installed(ring_, {&probe, 1}, kFunction);
    for (uint32_t i = 0; i < kCalls; ++i) {
      Registers registers = SomeRegisters();
      installed.Run(registers);
    }
    return ring_.TakeRecords().size();
  }
};

TEST_F(RateTest, SoManyInASecond) {
  const uint64_t rate = ring::SecondsPerTick();
  const auto second = [&] { return static_cast<unsigned __int128>(ring::ReadTsc()) * rate >> 64; };
  for (int attempt = 0; attempt < 100'000; ++attempt) {
    const auto before = second();
    const uint64_t sampled_out = ring_.counters(0).sampled_out;
    const uint64_t recorded = Recorded({.per_second = kLimit}, rate);
    // The limit of this second may have been used up by the attempt before.
    if (second() != before || recorded == 0) continue;
    EXPECT_EQ(recorded, kLimit);
    EXPECT_EQ(ring_.counters(0).sampled_out - sampled_out, kCalls - kLimit);
    return;
  }
  FAIL() << "no attempt began and ended in the same second";
}

// Seconds of two ticks, of which 2^31 are less than it takes to have a test interrupted for long.
TEST_F(RateTest, EverySecondHasItsOwn) {
  constexpr uint64_t kEveryOtherTick = uint64_t{1} << 63;
  const auto recorded_from_now = [&](uint32_t every) {
    ring_.StartSampling(0, static_cast<uint32_t>(ring::ReadTsc() / 2));
    return Recorded({.every = every, .per_second = 1}, kEveryOtherTick);
  };
  for (uint32_t every : {1, 4}) {
    uint64_t recorded = 0;
    for (int attempt = 0; attempt < 100 && recorded != kCalls / every; ++attempt)
      recorded = recorded_from_now(every);
    EXPECT_EQ(recorded, kCalls / every);
  }
}

TEST(SamplingRule, TakesTurnsAndShares) {
  ring::SamplingState state;
  const auto taken = [&](const ring::Sampling& sampling, uint32_t second, int hits) {
    int count = 0;
    for (int i = 0; i < hits; ++i)
      count += ring::Take(sampling, state, second) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(taken({}, 5, 10), 10);
  EXPECT_EQ(taken({.every = 3}, 5, 10), 4);
  EXPECT_EQ(taken({.every = 3}, 5, 2), 0);
  EXPECT_EQ(taken({.per_second = 3}, 5, 10), 3);
  EXPECT_EQ(taken({.per_second = 3}, 4, 10), 0);  // the clocks of two CPUs may differ a little
  EXPECT_EQ(taken({.per_second = 3}, 6, 10), 3);
  EXPECT_EQ(taken({.per_second = 3}, 1000, 2), 2);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FilterDetourTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace probed::detour::testing

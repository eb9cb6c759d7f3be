// A hit passes a filter in machine code exactly when it passes in the interpreter; and one in N.

#include <cstring>

#include "engine/lang/fetch_program.h"
#include "engine/lang/filter.h"
#include "tests/detour/random_hit.h"

namespace probed::detour::testing {
namespace {

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

  uint64_t passed_ = 0;
  uint64_t dropped_ = 0;
};

void FilterDetourTest::AimAtText(const FetchOp& store, std::span<const std::byte> payload,
                                 lang::FilterCode& filter, FilterOp& op) {
  op.test = FilterTest::kText;
  op.size = 8;
  op.index = static_cast<uint16_t>(filter.patterns.size());
  uint32_t slot[2];
  std::memcpy(slot, payload.data() + store.slot, sizeof(slot));
  std::string text = "text";
  if (slot[1] < 60 && slot[1] > 0) {
    text.assign(reinterpret_cast<const char*>(payload.data()) + slot[0], slot[1]);
    if (memory_.OneIn(4)) text.back() ^= 1;
    if (memory_.OneIn(8)) text.pop_back();
  }
  if (text.empty()) text = "t";
  if (text.find('\0') != std::string::npos) text = "nul";
  filter.patterns.push_back({.text = text});
}

bool FilterDetourTest::AimAtField(const lang::FetchCode& program,
                                  std::span<const std::byte> payload, lang::FilterCode& filter,
                                  FilterOp& op) {
  if (program.fields.empty()) return false;
  const lang::FetchField& field = program.fields[memory_.Below(program.fields.size())];
  const FetchOp& store = program.ops[field.end - 1];
  if (store.count != 1) return false;
  op.operand = FilterOperand::kField;
  op.offset = store.slot;
  if (store.code == FetchOpcode::kStoreString) {
    AimAtText(store, payload, filter, op);
    return true;
  }
  if (store.code != FetchOpcode::kStoreValue && store.code != FetchOpcode::kStoreMemory) {
    return false;
  }
  op.size = store.size;
  uint64_t value = 0;
  std::memcpy(&value, payload.data() + store.slot, store.size);
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
      op.operand = memory_.OneIn(2) ? FilterOperand::kZero : FilterOperand::kIp;
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
    const lang::FilterCode filter =
        SomeFilter(program.code(), Payload(probe, ContextOf(before, 0)));
    probe.filter = &filter;
    InstalledDetour installed(ring_, {&probe, 1}, kFunction);
    if (!installed.refusal().empty()) continue;

    Registers after = before;
    RunAt(after, installed.original());
    lang::testing::SelfContext context = ContextOf(before, installed.site());
    std::vector<std::byte> payload;
    if (lang::Fetch(program, probe.limits, context, payload) == lang::FetchOutcome::kDropped) {
      continue;
    }
    const lang::FilterHit hit{
        .payload = payload, .comm = {}, .ip = installed.site(), .function = installed.site()};
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
}

TEST_P(FilterDetourTest, OneInSoMany) {
  const lang::FetchProgram program{lang::FetchCode{}};
  const auto every = static_cast<uint32_t>(GetParam() + 2);
  const DetourProbe probe{.program = &program, .limits = {}, .every = every};
  InstalledDetour installed(ring_, {&probe, 1}, kFunction);
  ASSERT_EQ(installed.refusal(), "");
  constexpr uint32_t kCalls = 1000;
  for (uint32_t i = 0; i < kCalls; ++i) {
    Registers registers = SomeRegisters();
    installed.Run(registers);
  }
  const uint64_t recorded = ring_.TakeRecords().size();
  EXPECT_EQ(recorded, (kCalls + every - 1) / every);
  EXPECT_EQ(ring_.counters(0).filtered, kCalls - recorded);
}

INSTANTIATE_TEST_SUITE_P(Seeds, FilterDetourTest, ::testing::Range(0, 10));

}  // namespace
}  // namespace probed::detour::testing

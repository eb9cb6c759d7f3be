// The table of shadow stacks as generated code searches it (engine/ring/layout.h).

#include "engine/probe/shadow_table.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <vector>

namespace probed::probe {
namespace {

constexpr ring::Geometry kGeometry{.cpu_count = 1, .ring_bytes = 4096};

class ShadowTableTest : public testing::Test {
 protected:
  // What a detour finds: the offset of the thread's stack, or nothing. Fails when it does not end.
  std::optional<uint64_t> Search(uint64_t base) {
    uint32_t place = ring::ThreadHash(base);
    for (uint32_t steps = 0; steps < ring::kThreadEntries; ++steps) {
      const auto& entry = *reinterpret_cast<const ring::ThreadEntry*>(
          control_.data() + kGeometry.thread_offset(place));
      if (entry.thread == base) return entry.shadow_stack;
      if (entry.thread == ring::ThreadEntry::kFree) return std::nullopt;
      place = (place + 1) % ring::kThreadEntries;
    }
    ADD_FAILURE() << "the search for " << base << " does not end";
    return std::nullopt;
  }
  ring::ShadowStack& StackAt(uint32_t stack) {
    return *reinterpret_cast<ring::ShadowStack*>(ring_.data() + kGeometry.shadow_offset(stack));
  }
  static uint64_t OffsetOf(uint32_t stack) { return kGeometry.shadow_offset(stack); }

  std::vector<std::byte> control_{kGeometry.control_bytes()};
  std::vector<std::byte> ring_{kGeometry.ring_area_bytes()};
  ShadowTable table_{kGeometry, control_, ring_};
};

TEST_F(ShadowTableTest, ThreadsFindTheirStacksWhateverComesAndGoes) {
  std::mt19937_64 random(1);
  std::map<uint64_t, uint64_t> expected;  // offset by base
  auto some_base = [&] { return 0x7f0000000000 + random() % 6000 * 0x1000; };
  for (int i = 0; i < 60'000; ++i) {
    uint64_t base = some_base();
    auto listed = expected.find(base);
    if (listed == expected.end()) {
      if (!table_.Add(base, 1)) continue;
      expected[base] = OffsetOf(*table_.Find(base));
    } else {
      table_.Free(*table_.Find(base));
      expected.erase(listed);
    }
    ASSERT_EQ(Search(base).has_value(), expected.contains(base));
    uint64_t other = some_base();
    auto found = expected.find(other);
    ASSERT_EQ(Search(other), found == expected.end() ? std::nullopt : std::optional(found->second));
  }
  EXPECT_GT(expected.size(), 1000u);
}

TEST_F(ShadowTableTest, IsNeverFull) {
  uint32_t added = 0;
  for (uint64_t base = 0x1000; base < 0x1000 * 20'000; base += 0x1000)
    added += table_.Add(base, 1) ? 1 : 0;
  EXPECT_EQ(added, ring::kMaxShadowStacks);
  EXPECT_EQ(Search(0x7f0000001000), std::nullopt);
}

TEST_F(ShadowTableTest, AStackIsUsedAgainAsLateAsCanBe) {
  ASSERT_TRUE(table_.Add(0x1000, 1));
  uint32_t first = *table_.Find(0x1000);
  table_.Free(first);
  for (uint64_t i = 2; i < ring::kMaxShadowStacks; ++i) {
    ASSERT_TRUE(table_.Add(0x1000 * i, 1));
    ASSERT_NE(*table_.Find(0x1000 * i), first);
  }
}

TEST_F(ShadowTableTest, ABarredBaseHasNoStackUntilTheLastReasonIsGone) {
  ASSERT_TRUE(table_.Add(0x1000, 1));
  StackAt(*table_.Find(0x1000)).depth = 1;
  table_.Bar(0x1000, 2);
  table_.Bar(0x1000, 3);
  EXPECT_EQ(Search(0x1000), std::nullopt);
  EXPECT_EQ(table_.stacks().size(), 1u);
  table_.Unbar(2);
  EXPECT_FALSE(table_.Add(0x1000, 1));
  table_.Unbar(3);
  EXPECT_TRUE(table_.Add(0x1000, 1));
}

TEST_F(ShadowTableTest, ReadsNoFurtherThanThereAreFrames) {
  ASSERT_TRUE(table_.Add(0x1000, 1));
  uint32_t stack = *table_.Find(0x1000);
  ring::ShadowStack& shared = StackAt(stack);
  shared.depth = ~uint64_t{0};
  shared.frames[1] = {.slot = 8, .probe = ~uint64_t{0}};
  EXPECT_EQ(table_.Frames(stack).size(), ring::kShadowFrames);
  EXPECT_EQ(table_.CountPending().at(ring::kMaxProbes - 1), 1u);
  EXPECT_FALSE(table_.Take(stack, 1, 16));
  EXPECT_TRUE(table_.Take(stack, 1, 8));
  EXPECT_EQ(shared.frames[1].slot, 0u);
}

}  // namespace
}  // namespace probed::probe

#include "engine/arch/x86_64/boundary.h"

#include <gtest/gtest.h>

#include "tests/arch/hex.h"

namespace probed::arch {
namespace {

// endbr64; push %rbp; mov %rsp,%rbp; ret
const std::vector<uint8_t> kFunction = Hex("f3 0f 1e fa 55 48 89 e5 c3");

TEST(BoundaryTest, KnowsEveryStart) {
  std::vector<uint64_t> starts;
  for (uint64_t offset = 0; offset < kFunction.size(); ++offset) {
    if (IsInstructionBoundary(kFunction, offset)) starts.push_back(offset);
  }
  EXPECT_EQ(starts, (std::vector<uint64_t>{0, 4, 5, 8}));
}

TEST(BoundaryTest, NamesTheInstructionAround) {
  std::optional<Boundary> boundary = FindBoundary(kFunction, 6);
  ASSERT_TRUE(boundary.has_value());
  EXPECT_FALSE(boundary->is_start);
  EXPECT_EQ(boundary->instruction_start, 5u);
  EXPECT_EQ(boundary->instruction_length, 3u);
}

TEST(BoundaryTest, DoesNotGuess) {
  EXPECT_FALSE(FindBoundary(kFunction, kFunction.size()).has_value());
  EXPECT_FALSE(FindBoundary(Hex("90 06 90"), 2).has_value());  // data on the way
  EXPECT_FALSE(FindBoundary(Hex("90 48 89"), 2).has_value());  // cut in an instruction
  EXPECT_FALSE(IsInstructionBoundary({}, 0));
}

}  // namespace
}  // namespace probed::arch

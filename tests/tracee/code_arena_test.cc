// Where memory of ours may go in an address space.

#include "engine/tracee/code_arena.h"

#include <gtest/gtest.h>

namespace probed::tracee {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kCode = uint64_t{0x5555} << 32;
constexpr size_t kSize = 256u << 10;

elf::Mapping Mapped(uint64_t start, uint64_t end, const char* path) {
  elf::Mapping mapping;
  mapping.start = RemoteAddr{start};
  mapping.end = RemoteAddr{end};
  mapping.path = path;
  return mapping;
}

Window From(uint64_t low, uint64_t length) {
  return {.low = RemoteAddr{low}, .high = RemoteAddr{low + length}, .near = RemoteAddr{low}};
}

const std::vector<elf::Mapping> kProgram = {
    Mapped(kCode, kCode + kMiB, "/bin/program"),
    Mapped(kCode + 16 * kMiB, kCode + 17 * kMiB, "[heap]"),
    Mapped(kCode + 1024 * kMiB, kCode + 1025 * kMiB, "/lib/library.so"),
    Mapped(kCode + 1500 * kMiB, kCode + 1501 * kMiB, "[stack]"),
};

TEST(FindGapTest, NearCodeButNotBesideIt) {
  auto place = FindGap(kProgram, Window::Around(RemoteAddr{kCode}), kSize);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->value, kCode - kMiB - kSize);
}

TEST(FindGapTest, AWindowIsKeptToThePage) {
  auto place = FindGap(kProgram, From(kCode + 800 * kMiB + 0x1234, 256), kSize);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->value, kCode + 800 * kMiB + 0x1000);
  EXPECT_FALSE(FindGap(kProgram, From(kCode, 256), kSize).has_value());
}

TEST(FindGapTest, HeapsAndStacksMayGrow) {
  EXPECT_FALSE(FindGap(kProgram, From(kCode + 100 * kMiB, kMiB), kSize).has_value());
  EXPECT_TRUE(FindGap(kProgram, From(kCode + 280 * kMiB, kMiB), kSize).has_value());
  EXPECT_FALSE(FindGap(kProgram, From(kCode + 1400 * kMiB, kMiB), kSize).has_value());
  EXPECT_TRUE(FindGap(kProgram, From(kCode + 1300 * kMiB, kMiB), kSize).has_value());
}

TEST(FindGapTest, OnlyInUserSpace) {
  EXPECT_FALSE(FindGap({}, From(0, 4096), kSize).has_value());
  EXPECT_FALSE(FindGap({}, From(uint64_t{1} << 47, 4096), kSize).has_value());
  EXPECT_FALSE(FindGap({}, From(~uint64_t{0} - 4096, 256), kSize).has_value());
}

}  // namespace
}  // namespace probed::tracee

#include "engine/kernel/functions.h"

#include <gtest/gtest.h>

namespace probed::kernel {
namespace {

TEST(Kallsyms, GivesFunctionsWithSizesAndModules) {
  const auto functions = ParseKallsyms(
      "ffffffff81000000 T first\n"
      "ffffffff81000010 d data\n"
      "ffffffff81000030 t second\n"
      "ffffffff81000030 T alias\n"
      "ffffffff81000040 W last\n"
      "ffffffffc0001000 t in_module\t[one]\n"
      "ffffffffc0001008 t behind\t[one]\n");
  ASSERT_EQ(functions.size(), 6u);
  EXPECT_EQ(functions[0].name, "first");
  EXPECT_EQ(functions[0].size, 0x10u) << "up to the data";
  EXPECT_EQ(functions[1].name, "second");
  EXPECT_EQ(functions[1].size, 0x10u) << "its alias has no size of its own";
  EXPECT_EQ(functions[2].size, 0x10u);
  EXPECT_EQ(functions[3].size, 0u) << "what follows is in a module";
  EXPECT_EQ(functions[4].module, "one");
  EXPECT_EQ(functions[4].size, 8u);
  EXPECT_EQ(functions[5].size, 0u);
}

TEST(Kallsyms, PassesOverWhatIsNoLine) {
  for (const char* text : {"", "\n\n", "zz t a\n", "1 t\n", "1 tt a\n", "t a\n", "1"})
    EXPECT_TRUE(ParseKallsyms(text).empty()) << text;
  EXPECT_EQ(ParseKallsyms("10 t a").size(), 1u) << "without a newline at its end";
}

TEST(Kallsyms, LivesWithHiddenAddresses) {
  const auto functions = ParseKallsyms("0000000000000000 T a\n0000000000000000 t b\n");
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[1].address, 0u);
  EXPECT_EQ(functions[1].size, 0u);
}

}  // namespace
}  // namespace probed::kernel

#include <gtest/gtest.h>

#include "engine/lang/definition_set.h"

namespace probed::lang {
namespace {

std::vector<std::string> Texts(std::string_view bytes) {
  std::vector<std::string> texts;
  for (const InputLine& line : SplitLines(bytes)) {
    texts.push_back((line.too_long ? "!" : "") + line.text.substr(0, 4));
  }
  return texts;
}

using Strings = std::vector<std::string>;

TEST(SplitLines, CutsAtNewlines) {
  EXPECT_EQ(Texts(""), Strings{});
  EXPECT_EQ(Texts("a"), Strings{"a"});
  EXPECT_EQ(Texts("a\n"), Strings{"a"});
  EXPECT_EQ(Texts("a\n\nb"), (Strings{"a", "", "b"}));
}

TEST(SplitLines, ANulByteEndsTheWrite) {
  EXPECT_EQ(Texts(std::string_view("a\nb\0c\nd\n", 8)), (Strings{"a", std::string("!b\0c\n", 5)}));
  EXPECT_TRUE(SplitLines(std::string_view("a\0", 2)).at(0).too_long);
}

TEST(SplitLines, KnowsTheLongestLine) {
  EXPECT_FALSE(SplitLines(std::string(4094, ' ') + "\n").at(0).too_long);
  EXPECT_FALSE(SplitLines(std::string(4095, ' ')).at(0).too_long);
  EXPECT_TRUE(SplitLines(std::string(4095, ' ') + "\n").at(0).too_long);
  EXPECT_TRUE(SplitLines(std::string(4096, ' ')).at(0).too_long);
  EXPECT_EQ(Texts(std::string(3000, 'x') + "\n" + std::string(3000, 'y') + "\n"),
            (Strings{"xxxx", "yyyy"}));
  EXPECT_EQ(Texts("ab\n" + std::string(5000, 'y') + "\nz\n"), (Strings{"ab", "!yyyy"}));
}

TEST(Classify, TellsUserFromKernel) {
  EXPECT_EQ(Classify("p:g/a /bin/x:0x10"), LineDestination::kUser);
  EXPECT_EQ(Classify("r10 /bin/x:main %di"), LineDestination::kUser);
  EXPECT_EQ(Classify("p /bin/x"), LineDestination::kUser);
  EXPECT_EQ(Classify("p:g/a vfs_read %di"), LineDestination::kKernel);
  EXPECT_EQ(Classify("p:g/a vfs_read+8%return"), LineDestination::kKernel);
  EXPECT_EQ(Classify("p 0xffffffff81000000"), LineDestination::kKernel);
  EXPECT_EQ(Classify("r100:x vfs_read"), LineDestination::kKernel);
}

TEST(Classify, KnowsTheOtherDynamicEvents) {
  EXPECT_EQ(Classify("f:g/a vfs_read"), LineDestination::kKernel);
  EXPECT_EQ(Classify("f10:g/a vfs_read%return"), LineDestination::kKernel);
  EXPECT_EQ(Classify("t:g/a sched_switch"), LineDestination::kKernel);
  EXPECT_EQ(Classify("e:g/a sched/sched_switch"), LineDestination::kKernel);
  EXPECT_EQ(Classify("s:lat u64 delta"), LineDestination::kKernel);
  EXPECT_EQ(Classify("e sched/sched_switch"), LineDestination::kKernel);
  EXPECT_EQ(Classify("total:x y"), LineDestination::kMalformed);
}

TEST(Classify, ANameAndASymbolDependOnTheDialect) {
  EXPECT_EQ(Classify("p bash:readline", Dialect::kExtended), LineDestination::kUser);
  EXPECT_EQ(Classify("p xfs:xfs_ilock", Dialect::kKernel), LineDestination::kKernel);
}

TEST(Classify, KnowsTheRest) {
  EXPECT_EQ(Classify(""), LineDestination::kEmpty);
  EXPECT_EQ(Classify(" \t\xa0# p /bin/x:1"), LineDestination::kEmpty);
  EXPECT_EQ(Classify("-:g/a"), LineDestination::kDeletion);
  EXPECT_EQ(Classify(" -:g/a"), LineDestination::kMalformed);
  EXPECT_EQ(Classify("p:g/a"), LineDestination::kMalformed);
  EXPECT_EQ(Classify("P:g/a /bin/x:1"), LineDestination::kMalformed);
  EXPECT_EQ(Classify("hello world"), LineDestination::kMalformed);
}

}  // namespace
}  // namespace probed::lang

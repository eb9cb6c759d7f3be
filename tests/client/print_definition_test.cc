#include "client/print_definition.h"

#include <gtest/gtest.h>

namespace probed::client {
namespace {

v1::Probe Defined(const std::string& line) {
  v1::Probe probe;
  probe.set_group("g");
  probe.set_event("e");
  probe.set_definition(line);
  probe.set_enabled(true);
  return probe;
}

TEST(DefinitionLines, AreTheDefinitionAloneWhereThatIsAll) {
  EXPECT_EQ(DefinitionLines(Defined("p:g/e /x:0x10")), "p:g/e /x:0x10");
}

TEST(DefinitionLines, OptionsAreQuotedForAShell) {
  auto probe = Defined("r:g/e /x:0x10");
  probe.set_at_ret(true);
  probe.set_filter("COMM == \"it's\"");
  probe.mutable_sampling()->set_per_second(9);
  probe.set_enabled(false);
  EXPECT_EQ(DefinitionLines(probe),
            "# define --at-ret --filter 'COMM == \"it'\\''s\"' --rate 9/s --disabled\n"
            "r:g/e /x:0x10");
}

TEST(DefinitionLines, OfGoNeedNoOption) {
  auto probe = Defined("r9:g/e /x:0x10");
  probe.set_at_ret(true);
  EXPECT_EQ(DefinitionLines(probe), "r9:g/e /x:0x10");
}

TEST(DefinitionLines, InTheKernel) {
  auto uprobe = Defined("p:g/e /x:0x10");
  uprobe.set_mechanism(v1::MECHANISM_KERNEL);
  uprobe.add_triggers("traceoff:1");
  EXPECT_EQ(DefinitionLines(uprobe),
            "# define --mechanism kernel\n# trigger g/e 'traceoff:1'\np:g/e /x:0x10");
  auto kprobe = Defined("p:g/e vfs_read");
  kprobe.set_mechanism(v1::MECHANISM_KERNEL);
  EXPECT_EQ(DefinitionLines(kprobe), "p:g/e vfs_read");
}

}  // namespace
}  // namespace probed::client

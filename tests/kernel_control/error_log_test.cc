#include "engine/kernel/error_log.h"

#include <gtest/gtest.h>

namespace probed::kernel {
namespace {

constexpr char kLog[] =
    "[  531.023616] trace_kprobe: error: Invalid probed address or symbol\n"
    "  Command: p:g/a no_such\n"
    "                 ^\n"
    "[  532.023616] event filter parse error: error: Field not found\n"
    "  Command: foo == 1\n"
    "           ^\n"
    "[  533.023616] trace_kprobe: error: Failed to register probe event\n"
    "  Command: p:g/a no_such\n"
    "           ^\n";

TEST(ErrorLog, IsParsed) {
  const auto entries = ParseErrorLog(kLog);
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].subsystem, "trace_kprobe");
  EXPECT_EQ(entries[0].message, "Invalid probed address or symbol");
  EXPECT_EQ(entries[0].command, "p:g/a no_such");
  EXPECT_EQ(entries[0].caret, 6);
  EXPECT_EQ(entries[1].subsystem, "event filter parse error");
  EXPECT_EQ(entries[1].caret, 0);
}

TEST(ErrorLog, TheNewestEntryCounts) {
  const auto found = FindError(kLog, "p:g/a no_such");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->message, "Failed to register probe event");
  EXPECT_FALSE(FindError(kLog, "p:g/a no_suc"));
}

// The kernel logs the filter of an event probe without the line that it is in.
TEST(ErrorLog, AFilterIsOfItsLine) {
  const auto found = FindFilterError(kLog, "e:g/a sched.sched_switch if foo == 1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->message, "Field not found");
  EXPECT_EQ(found->command, "e:g/a sched.sched_switch if foo == 1");
  EXPECT_EQ(found->caret, 28);
  EXPECT_FALSE(FindFilterError(kLog, "e:g/a sched.sched_switch if foo == 2"));
  EXPECT_FALSE(FindFilterError(kLog, "e:g/a sched.sched_switch"));
}

TEST(ErrorLog, IsTakenAsItComes) {
  EXPECT_TRUE(ParseErrorLog("").empty());
  EXPECT_TRUE(ParseErrorLog("[ 1.0] x: error: cut").empty());
  EXPECT_TRUE(ParseErrorLog("[ 1.0] x: no\n  Command: y\n").empty());
  EXPECT_EQ(ParseErrorLog("[ 1.0] x: error: y\n  Command: z").size(), 1u);
}

TEST(ErrorLog, MessagesHaveTheKernelsWords) {
  EXPECT_EQ(CodeOfMessage("Invalid probed address or symbol"), "BAD_PROBE_ADDR");
  EXPECT_EQ(CodeOfMessage("Invalid register name"), "BAD_REG_NAME");
  EXPECT_EQ(CodeOfMessage("Maxactive is too big"), "MAXACT_TOO_BIG");
  EXPECT_EQ(CodeOfMessage("Maxactive is not for kprobe"), "BAD_MAXACT_TYPE");
  EXPECT_EQ(CodeOfMessage("Field not found"), "FIELD_NOT_FOUND");
  EXPECT_EQ(CodeOfMessage("Invalid type"), "INVALID_TYPE");
  EXPECT_EQ(CodeOfMessage("Something new"), "KERNEL_REFUSED");
}

}  // namespace
}  // namespace probed::kernel

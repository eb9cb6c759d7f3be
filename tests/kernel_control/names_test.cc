#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/kernel/definition_line.h"
#include "engine/kernel/event_names.h"
#include "engine/kernel/own_names.h"
#include "engine/kernel/owner.h"
#include "engine/lang/line.h"

namespace probed::kernel {
namespace {

constexpr Owner kOwner{.pid = 12, .start_ticks = 345};
constexpr Owner kSecond{.pid = 12, .start_ticks = 345, .serial = 6};

DefinitionLine Parse(const std::string& text) {
  auto line = ParseDefinition(lang::Tokenize(text));
  if (!line.ok()) std::abort();  // a test of its own tells why
  return *line;
}

TEST(Owner, IsReadBackFromItsNames) {
  EXPECT_EQ(InstanceName(kOwner), "probed-12-345");
  EXPECT_EQ(InstanceName(kSecond), "probed-12-345-6");
  for (const Owner& owner : {kOwner, kSecond}) {
    EXPECT_EQ(ParseInstanceName(InstanceName(owner)), owner);
    EXPECT_EQ(OwnerOf(GroupPrefix(owner) + "my"), owner);
    EXPECT_EQ(WithoutPrefix(GroupPrefix(owner) + "my_own"), "my_own");
  }
}

TEST(Owner, IsNobodyElse) {
  for (const char* name :
       {"probed", "probed-", "probed-1", "probed-1-", "probed-01-2", "probed-1-2-", "probed-1-2-0",
        "probed-1-2x", "Probed-1-2", "probed-1-2-3-4", "probed--1-2", "probed_1_2", "other"})
    EXPECT_FALSE(ParseInstanceName(name)) << name;
  for (const char* name : {"probed_my", "probed_1_my", "probed_1_2", "probed_1_2_", "probed-1-2-my",
                           "probed_01_2_my", "myprobed_1_2_my", "sched"})
    EXPECT_FALSE(OwnerOf(name)) << name;
  EXPECT_EQ(WithoutPrefix("sched"), "sched");
}

TEST(DefinitionLine, GoesToTheKernelUnderOurPrefix) {
  EXPECT_EQ(KernelLine(Parse("p:my/open do_sys_openat2  %di"), kOwner),
            "p:probed_12_345_my/open do_sys_openat2 %di");
  EXPECT_EQ(KernelLine(Parse("p:my.open vfs_read"), kOwner), "p:probed_12_345_my/open vfs_read");
  EXPECT_EQ(KernelLine(Parse("r100:open vfs_read $retval"), kSecond),
            "r100:probed_12_345_6_kprobes/open vfs_read $retval");
  EXPECT_EQ(KernelLine(Parse("p:a /bin/x:0x10"), kOwner), "p:probed_12_345_uprobes/a /bin/x:0x10");
  EXPECT_EQ(KernelLine(Parse("s:lat u64 delta; pid_t pid"), kOwner),
            "s:synthetic/probed_12_345_lat u64 delta; pid_t pid");
}

TEST(DefinitionLine, NamesWhatHasNoName) {
  EXPECT_EQ(Parse("p vfs_read").event, "p_vfs_read_0");
  EXPECT_EQ(Parse("r:g/ xfs:xfs_ilock+16").event, "r_xfs_xfs_ilock_16");
  EXPECT_EQ(Parse("p 0xffffffff81000000").event, "p_0xffffffff81000000");
  EXPECT_EQ(Parse("f kfree").event, "kfree__entry");
  EXPECT_EQ(Parse("f kfree%return").event, "kfree__exit");
  EXPECT_EQ(Parse("t sched_switch").event, "sched_switch");
  EXPECT_EQ(Parse("e sched.sched_switch").event, "sched_sched_switch");
  EXPECT_EQ(Parse("t sched_switch").group, "tracepoints");
}

TEST(DefinitionLine, RefusesNamesAsTheKernelDoes) {
  const auto refusal = ParseDefinition(lang::Tokenize("p:1g/a vfs_read"));
  ASSERT_FALSE(refusal.ok());
  EXPECT_EQ(refusal.error().code, lang::RefusalCode::kBadGroupName);
  EXPECT_EQ(refusal.error().column, 2);
  EXPECT_FALSE(ParseDefinition(lang::Tokenize("p: vfs_read")).ok());
}

TEST(DefinitionLine, PutsTheCaretBack) {
  const auto column_of = [](const std::string& text, const std::string& what) {
    const DefinitionLine line = Parse(text);
    const auto at = KernelLine(line, kOwner).find(what);
    return WrittenColumn(line, kOwner, static_cast<int>(at));
  };
  EXPECT_EQ(column_of("p:my/open vfs_read %zz", "%zz"), 19);
  EXPECT_EQ(column_of("p:my/open vfs_read", "vfs_read"), 10);
  EXPECT_EQ(column_of("p vfs_read %zz", "%zz"), 11);
  EXPECT_EQ(column_of("r100000:my/open vfs_read", "100000"), 1);
}

TEST(DefinitionLine, IsReadBackWithoutThePrefix) {
  EXPECT_EQ(
      ReadBack({.kind = "r100", .group = "probed_1_2_my", .event = "a", .body = "vfs_read x=%ax"}),
      "r100:my/a vfs_read x=%ax");
  EXPECT_EQ(
      ReadBack({.kind = "s", .group = "synthetic", .event = "probed_1_2_lat", .body = "u64 a"}),
      "s:synthetic/lat u64 a");
}

TEST(OwnNames, AreFoundInOtherText) {
  OwnNames names;
  names.Add({"my", "open"}, {"probed_12_345_my", "open"});
  names.Add({"synthetic", "lat"}, {"synthetic", "probed_12_345_lat"});
  EXPECT_EQ(names.ToKernel("my.open a=$a if a > 1"), "probed_12_345_my.open a=$a if a > 1");
  EXPECT_EQ(names.ToKernel("enable_event:my:open:1 if x == 2"),
            "enable_event:probed_12_345_my:open:1 if x == 2");
  EXPECT_EQ(names.ToKernel("tommy.open my.opened not-my.open"), "tommy.open my.opened not-my.open");
  EXPECT_EQ(names.ToKernel("hist:keys=x:onmatch(my.open).lat($d):onmax($d).trace(lat,$d)"),
            "hist:keys=x:onmatch(probed_12_345_my.open).probed_12_345_lat($d)"
            ":onmax($d).trace(probed_12_345_lat,$d)");
  EXPECT_EQ(ToWritten("enable_event:probed_12_345_my:open:unlimited", kOwner),
            "enable_event:my:open:unlimited");
}

TEST(OwnNames, DoNotMoveTheCaret) {
  DefinitionLine line = Parse("e:ep my.open x=$zz");
  OwnNames names;
  names.Add({"my", "open"}, {"probed_12_345_my", "open"});
  line.kernel_body = names.ToKernel(line.body);
  const std::string kernel = KernelLine(line, kOwner);
  const auto column_of = [&](const std::string& what) {
    return WrittenColumn(line, kOwner, static_cast<int>(kernel.find(what)));
  };
  EXPECT_EQ(column_of("$zz"), 15);
  EXPECT_EQ(column_of("probed_12_345_my.open"), 5);
}

TEST(DynamicEvents, AreParsed) {
  const auto events = ParseDynamicEvents(
      "p:my/open do_sys_openat2 a=%di\njunk\nr8:a/b /x y:0x0000000000000010\n"
      "s:synthetic/lat\tu64 delta\np:g/e\n");
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].group, "my");
  EXPECT_EQ(events[1].kind, "r8");
  EXPECT_EQ(events[1].body, "/x y:0x0000000000000010");
  EXPECT_EQ(events[2].event, "lat");
  EXPECT_EQ(events[3].body, "");
}

TEST(EventNames, MayHaveWildcards) {
  const std::string available =
      "syscalls:sys_enter_openat\nsched:sched_wakeup\nsched:sched_switch\n"
      "probed_1_2_my:sched\nsynthetic:probed_1_2_x\n";
  const auto names = MatchEvents(available, "sched:*");
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].event, "sched_switch");
  EXPECT_EQ(MatchEvents(available, "*:*").size(), 3u);
  EXPECT_EQ(MatchEvents(available, "sched:sched_wake").size(), 0u);
}

}  // namespace
}  // namespace probed::kernel

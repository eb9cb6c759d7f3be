#include "engine/kernel/control.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fmt/format.h>

#include "engine/event/hub.h"
#include "engine/kernel/dynamic_events.h"
#include "engine/kernel/error_log.h"
#include "tests/kernel_control/own_tracefs.h"

namespace probed::kernel {
namespace {

using testing::DefinitionsWith;
using testing::InstancesWith;

constexpr pid_t kNobody = 5'000'001;

class ControlTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tracefs_ = testing::RealTracefs();
    if (!tracefs_) GTEST_SKIP() << "no tracefs that may be written";
    owner_.start_ticks = static_cast<uint64_t>(getpid());
    control_.emplace(owner_, drainer_);
  }

  Control::Outcome Create(const std::vector<std::string>& lines, const ProbeOptions& options = {}) {
    std::vector<ProbeRequest> requests;
    for (const std::string& line : lines)
      requests.push_back({.line = requests.size(), .text = line});
    return control_->Create(requests, options, [this] { return ++last_id_; });
  }
  std::vector<std::string> Ours() { return DefinitionsWith(*tracefs_, GroupPrefix(owner_)); }
  std::vector<std::string> Instances() { return InstancesWith(*tracefs_, InstanceName(owner_)); }
  std::string ReadEvent(const std::string& file) {
    const auto text = tracefs_->Read("instances/" + InstanceName(owner_) + "/events/" + file);
    return text.ok() ? *text : "";
  }

  std::optional<Tracefs> tracefs_;
  Owner owner_{.pid = kNobody};
  event::Hub hub_;
  event::Drainer drainer_{hub_};
  std::optional<Control> control_;
  event::ProbeId last_id_ = 0;
};

TEST_F(ControlTest, WritesNothingBeforeTheFirstProbe) {
  EXPECT_TRUE(control_->List().empty());
  EXPECT_TRUE(Instances().empty());
}

TEST_F(ControlTest, SwitchesAnEventOnAndLeavesNothing) {
  const auto outcome = Create({"sched:sched_switch"});
  ASSERT_FALSE(outcome.refusal) << outcome.refusal->error.ToString();
  ASSERT_EQ(outcome.probes.size(), 1u);
  EXPECT_EQ(outcome.probes[0].definition, "sched:sched_switch");
  EXPECT_EQ(outcome.probes[0].schema->group, "sched");
  EXPECT_EQ(outcome.probes[0].schema->event, "sched_switch");
  EXPECT_EQ(ReadEvent("sched/sched_switch/enable"), "1\n");
  control_->Delete({outcome.probes[0].id});
  EXPECT_TRUE(Instances().empty());
}

TEST_F(ControlTest, TwoMayTraceTheSameEvent) {
  const auto first = Create({"sched:sched_wakeup"}, {.filter = "pid == 1"});
  const auto second = Create({"sched:sched_wakeup"}, {.enable = false});
  ASSERT_FALSE(first.refusal || second.refusal);
  EXPECT_EQ(Instances().size(), 2u);
  EXPECT_EQ(ReadEvent("sched/sched_wakeup/filter"), "pid == 1\n");
  control_->Delete({second.probes[0].id});
  EXPECT_EQ(Instances().size(), 1u);
  EXPECT_EQ(ReadEvent("sched/sched_wakeup/enable"), "1\n");
}

TEST_F(ControlTest, DefinesKernelUprobesUnderItsOwnNames) {
  const auto outcome =
      Create({"p:my/a /proc/self/exe:0x1000 %di", "r /proc/self/exe:0x1000"}, {.enable = false});
  ASSERT_FALSE(outcome.refusal) << outcome.refusal->error.ToString();
  ASSERT_EQ(outcome.probes.size(), 2u);
  EXPECT_EQ(outcome.probes[0].definition, "p:my/a /proc/self/exe:0x0000000000001000 arg1=%di");
  EXPECT_EQ(outcome.probes[0].schema->group, "my");
  EXPECT_EQ(Ours().size(), 2u);
  control_.reset();
  EXPECT_TRUE(Ours().empty());
  EXPECT_TRUE(Instances().empty());
}

TEST_F(ControlTest, AllLinesOrNone) {
  const auto kept = Create({"sched:sched_switch"});
  const auto outcome = Create({"p:my/a /proc/self/exe:0x1000", "p:my/b /proc/self/exe:0x1000 %zz"});
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->line, 1u);
  EXPECT_TRUE(Ours().empty());
  EXPECT_EQ(control_->List().size(), 1u);
}

TEST_F(ControlTest, RelaysTheKernelsWordsAndCaret) {
  const auto outcome = Create({"p:my/b  /proc/self/exe:0x1000   a=%zz # why"});
  ASSERT_TRUE(outcome.refusal);
  const lang::Verdict& verdict = outcome.refusal->verdict;
  EXPECT_EQ(verdict.code, "BAD_REG_NAME");
  EXPECT_EQ(verdict.message, "Invalid register name");
  EXPECT_EQ(verdict.command, "p:my/b /proc/self/exe:0x1000 a=%zz");
  EXPECT_EQ(verdict.caret, 31);
  EXPECT_EQ(verdict.error_number, EINVAL);
  EXPECT_TRUE(Instances().empty());
}

TEST_F(ControlTest, ExplainsWhatTheKernelKeepsToItself) {
  const auto outcome = Create({"p:my/b /proc/self/exe"});
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->error.reason, "KERNEL_REFUSED");
  EXPECT_FALSE(outcome.refusal->verdict.message);
  EXPECT_NE(outcome.refusal->verdict.explanation.find("/PATH:0xOFFSET"), std::string::npos);
}

TEST_F(ControlTest, RefusesAFilterAndKeepsTheOldOne) {
  const auto outcome = Create({"sched:sched_switch"}, {.filter = "next_pid > 0"});
  ASSERT_FALSE(outcome.refusal);
  const auto id = outcome.probes[0].id;
  const auto refused = control_->SetFilter(id, "no_field == 1");
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->in_filter);
  EXPECT_EQ(refused->verdict.message, "Field not found");
  EXPECT_TRUE(refused->verdict.caret);
  EXPECT_EQ(ReadEvent("sched/sched_switch/filter"), "next_pid > 0\n");
  EXPECT_FALSE(control_->SetFilter(id, "0"));
  EXPECT_EQ(ReadEvent("sched/sched_switch/filter"), "none\n");
}

TEST_F(ControlTest, TakesAndReadsBackTriggers) {
  const auto outcome =
      Create({"sched:sched_switch", "p:my/a /proc/self/exe:0x1000"}, {.enable = false});
  ASSERT_FALSE(outcome.refusal);
  const auto id = outcome.probes[1].id;
  EXPECT_FALSE(control_->WriteTrigger(id, "traceoff:3 if common_pid == 1"));
  EXPECT_FALSE(control_->WriteTrigger(id, "enable_event:sched:sched_switch:5"));
  EXPECT_TRUE(control_->WriteTrigger(id, "no_such_command"));
  const auto triggers = control_->Find(id)->triggers;
  ASSERT_EQ(triggers.size(), 2u);
  EXPECT_EQ(triggers[0], "enable_event:sched:sched_switch:count=5");
  EXPECT_EQ(triggers[1], "traceoff:count=3 if common_pid == 1");
  EXPECT_FALSE(control_->WriteTrigger(id, "!traceoff"));
  // What is left holds the definition, and goes with it.
  control_->Delete({id});
  EXPECT_TRUE(Ours().empty());
}

// One that a trigger of another names is busy for as long as that is there.
TEST_F(ControlTest, DefinitionsThatNeedEachOtherGoInAnyOrder) {
  const std::vector<std::string> lines{"p:my/a /proc/self/exe:0x1000",
                                       "p:my/b /proc/self/exe:0x1010"};
  for (const bool together : {true, false}) {
    const auto outcome = Create(lines, {.enable = false});
    ASSERT_FALSE(outcome.refusal);
    const auto a = outcome.probes[0].id, b = outcome.probes[1].id;
    ASSERT_FALSE(control_->WriteTrigger(b, "enable_event:my:a"));
    EXPECT_EQ(control_->Find(b)->triggers, std::vector<std::string>{"enable_event:my:a:unlimited"});
    control_->Delete(together ? std::vector{a, b} : std::vector{a});
    if (!together) {
      EXPECT_EQ(control_->List().size(), 1u);
      control_->Delete({b});
    }
    EXPECT_TRUE(Ours().empty());
    EXPECT_TRUE(Instances().empty());
  }
  const auto outcome = Create(lines, {.enable = false});
  ASSERT_FALSE(control_->WriteTrigger(outcome.probes[1].id, "enable_event:my:a"));
  control_.reset();
  EXPECT_TRUE(Ours().empty());
  EXPECT_TRUE(Instances().empty());
}

TEST_F(ControlTest, SaysWhatMayBeWrongWithATrigger) {
  const auto outcome = Create({"p:my/a /proc/self/exe:0x1000"}, {.enable = false});
  ASSERT_FALSE(outcome.refusal);
  const auto id = outcome.probes[0].id;
  ASSERT_FALSE(control_->WriteTrigger(id, "traceoff"));
  auto refused = control_->WriteTrigger(id, "traceon");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->verdict.error_number, EEXIST);
  EXPECT_NE(refused->verdict.explanation.find("already"), std::string::npos);
  refused = control_->WriteTrigger(id, "enable_event:my:b");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->verdict.command, "enable_event:my:b");
}

TEST_F(ControlTest, AGroupThatIsTooLongWithOurPrefixOnly) {
  const std::string group(60, 'g');
  const auto outcome = Create({"p:" + group + "/a /proc/self/exe:0x1000"}, {.enable = false});
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->verdict.code, "GROUP_TOO_LONG");
  EXPECT_NE(outcome.refusal->error.hint.find(GroupPrefix(owner_)), std::string::npos);
}

TEST_F(ControlTest, AnswersForEventsThatAreNotThere) {
  auto outcome = Create({"sched:sched_swich"});
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->error.reason, "NO_SUCH_EVENT");
  EXPECT_EQ(outcome.refusal->error.hint, "sched:sched_switch");
  outcome = Create({"sched:sched_wakeup*"}, {.enable = false});
  ASSERT_FALSE(outcome.refusal);
  EXPECT_EQ(outcome.probes.size(), 2u);
}

TEST_F(ControlTest, NamesWhatTheKernelIsBuiltWithout) {
  if (tracefs_->Has("kprobe_events")) GTEST_SKIP() << "this kernel has kprobes";
  const auto outcome = Create({"p:my/a vfs_read"});
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->error.reason, "NO_KPROBE_EVENTS");
}

// What the kernel says to each line when it is appended to an event of its own.
TEST_F(ControlTest, OneMoreProbeOfAnEventIsJudgedAsTheKernelDoes) {
  const std::vector<std::string> before{"p:pt_append/a /proc/self/exe:0x1000 x=%di",
                                        "p:pt_append/a /proc/self/exe:0x1010 x=%si"};
  const std::vector<std::string> lines{"r:pt_append/a /proc/self/exe:0x1020 x=%di",
                                       "p:pt_append/a /proc/self/exe:0x1020 x=%di:u8",
                                       "p:pt_append/a /proc/self/exe:0x1020 y=%di",
                                       "p:pt_append/a /proc/self/exe:0x1020",
                                       "p:pt_append/a /proc/self/exe:0x1020 x=%di y=%si",
                                       "p:pt_append/a /proc/self/exe:0x1010 x=%si",
                                       "p:pt_append/a /proc/self/exe:0x1000 x=%di",
                                       "p:pt_append/a /proc/self/exe:0x1020 x=%zz",
                                       "p:pt_append/a /proc/self/exe:0x1020 x=%cx:x64"};
  ASSERT_FALSE(Create(before).refusal);
  for (const std::string& line : before)
    ASSERT_TRUE(tracefs_->Write("dynamic_events", line + "\n").ok());
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    const Status kernel = tracefs_->Write("dynamic_events", line + "\n");
    const auto logged = FindError(*tracefs_->Read("error_log"), line);
    const auto refusal = Create({line}).refusal;
    ASSERT_EQ(refusal.has_value(), !kernel.ok());
    if (!refusal) continue;
    ASSERT_TRUE(logged);
    EXPECT_EQ(refusal->verdict.message, logged->message);
    EXPECT_EQ(refusal->verdict.caret, logged->caret);
    EXPECT_EQ(refusal->verdict.command, line);
    EXPECT_EQ(refusal->verdict.error_number, ErrnoOf(kernel.error()));
    EXPECT_NE(refusal->verdict.code, "KERNEL_REFUSED");
  }
  EXPECT_TRUE(RemoveDynamicEvent(*tracefs_, "pt_append", "a").ok());
  EXPECT_EQ(Ours().size(), 3u);  // and no trial
}

TEST_F(ControlTest, ProbesOfOneNameAreSwitchedAndTakenAwayOneByOne) {
  const auto outcome =
      Create({"p:my/a /proc/self/exe:0x1000 x=%di", "p:my/a /proc/self/exe:0x1010 x=%si"});
  ASSERT_FALSE(outcome.refusal) << outcome.refusal->error.ToString();
  ASSERT_EQ(outcome.probes.size(), 2u);
  for (const ProbeView& probe : outcome.probes) {
    EXPECT_EQ(probe.schema->event, "a");
    EXPECT_TRUE(probe.definition.starts_with("p:my/a /proc/self/exe:0x")) << probe.definition;
  }
  EXPECT_FALSE(control_->SetFilter(outcome.probes[1].id, "x == 1"));
  EXPECT_EQ(control_->Find(outcome.probes[0].id)->filter, "");
  control_->Delete({outcome.probes[0].id});
  EXPECT_EQ(Ours().size(), 1u);
  // The name that the first one had in the kernel is free.
  EXPECT_FALSE(Create({"p:my/a /proc/self/exe:0x1000 x=%di"}).refusal);
  EXPECT_EQ(Ours().size(), 2u);
}

TEST_F(ControlTest, NamesThatNobodyHasChosenDiffer) {
  const auto generated =
      Create({"p /proc/self/exe:0x1000", "p /proc/self/exe:0x1000"}, {.enable = false});
  ASSERT_FALSE(generated.refusal);
  EXPECT_NE(generated.probes[0].schema->event, generated.probes[1].schema->event);
}

TEST_F(ControlTest, SwitchesAllOrNone) {
  const auto outcome = Create({"sched:sched_switch", "sched:sched_wakeup"}, {.enable = false});
  ASSERT_FALSE(outcome.refusal);
  const std::vector<event::ProbeId> ids{outcome.probes[0].id, outcome.probes[1].id};
  ASSERT_TRUE(control_->SetEnabled(ids, true).ok());
  EXPECT_EQ(ReadEvent("sched/sched_wakeup/enable"), "1\n");
  ASSERT_TRUE(control_->SetEnabled(ids, false).ok());
  EXPECT_EQ(ReadEvent("sched/sched_switch/enable"), "0\n");
  EXPECT_FALSE(control_->Find(ids[0])->enabled);
}

TEST(ControlWithoutTracefs, SaysSo) {
  const testing::FakeTracefs fake;
  event::Hub hub;
  event::Drainer drainer(hub);
  Control control({.pid = kNobody}, drainer,
                  fake.Places(testing::FakeTracefs::Mount("proc", "/proc")));
  const auto outcome = control.Create({{.line = 3, .text = "sched:sched_switch"}}, {},
                                      [] { return event::ProbeId{1}; });
  ASSERT_TRUE(outcome.refusal);
  EXPECT_EQ(outcome.refusal->line, 3u);
  EXPECT_EQ(outcome.refusal->error.reason, "TRACEFS_NOT_MOUNTED");
}

}  // namespace
}  // namespace probed::kernel

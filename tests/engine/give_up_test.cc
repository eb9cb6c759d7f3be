// Letting go of a process that cannot be let go of: bounded in time, told, and nobody is harmed.

#include <fmt/format.h>

#include "base/file.h"
#include "engine/probe/stop_deadline.h"
#include "engine/sys/proc.h"
#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

using std::chrono::steady_clock;

bool Sleeps(pid_t tid) {
  auto status = sys::ReadTaskStatus(tid);
  return status.ok() && status->state == 'D';
}

bool IsTraced(pid_t tid) {
  auto status = sys::ReadTaskStatus(tid);
  return status.ok() && status->tracer_pid != 0;
}

std::chrono::duration<double> Measure(const std::function<void()>& work) {
  auto start = steady_clock::now();
  work();
  return steady_clock::now() - start;
}

class GiveUpTest : public EngineTest {
 protected:
  static std::vector<std::string> LinesFor(const Puppet& puppet) {
    return {fmt::format("p:t/x {}:probed", puppet.path()),
            fmt::format("r:t/y {}:probed", puppet.path())};
  }
};

TEST_F(GiveUpTest, AThreadInUninterruptibleSleepIsLetGoWhenItWakes) {
  Puppet puppet("sleeper");
  TargetId target = Attach(puppet);
  auto probes = Create(target, LinesFor(puppet));
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(puppet.Ask("call"), "2");
  pid_t sleeper = std::stoi(puppet.Ask("thread"));
  ASSERT_TRUE(Eventually([&] { return Sleeps(sleeper); }));
  DetachReport report;
  EXPECT_LT(Measure([&] { report = Detach(target); }), probe::kStopDeadline) << "waits for nobody";
  EXPECT_NE(report.warning.find("uninterruptible sleep"), std::string::npos) << report.warning;
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_FALSE(IsTraced(puppet.pid()));
  EXPECT_TRUE(IsTraced(sleeper));
  puppet.Send("wake");
  EXPECT_EQ(puppet.ReadLine(), "awake 42");
  EXPECT_EQ(puppet.Ask("call"), "2");
  puppet.CloseInput();
  EXPECT_EQ(puppet.Wait(), 0);
}

// One thread is enough to write a breakpoint; for a jump all must stand still, or sleep where it is
// known that they do no harm. Else that is tried again.
class BesideASleeper : public GiveUpTest {
 protected:
  BesideASleeper() { engine_ = std::move(*Engine::Create(Optimizing())); }

  void FallAsleep() {
    sleeper_ = std::stoi(puppet_.Ask("thread"));
    ASSERT_TRUE(Eventually([&] { return Sleeps(sleeper_); }));
  }
  void WakeUp() {
    puppet_.Send("wake");
    EXPECT_EQ(puppet_.ReadLine(), "awake 42");
  }

  Puppet puppet_{"sleeper"};
  pid_t sleeper_ = 0;
};

TEST_F(BesideASleeper, AttachedToAndProbed) {
  FallAsleep();
  TargetId target;
  EXPECT_LT(Measure([&] { target = Attach(puppet_); }), probe::kStopDeadline);
  auto probes = Create(target, LinesFor(puppet_));
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(puppet_.Ask("call"), "2");
  EXPECT_EQ(Counters(probes[0].id).hits, 1u);
  WakeUp();
  EXPECT_EQ(Counters(probes[0].id).hits, 2u);
  EXPECT_TRUE(BecomesOptimized(probes[0].id)) << "nobody has tried again";
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_F(BesideASleeper, JumpsAreTakenAwayWhenItWakes) {
  TargetId target = Attach(puppet_);
  auto probes = Create(target, LinesFor(puppet_));
  ASSERT_TRUE(BecomesOptimized(probes[0].id));
  FallAsleep();
  auto refused = engine_->SetOptimization(false);
  EXPECT_EQ(puppet_.Ask("call"), "2");
  EXPECT_EQ(Counters(probes[0].id).hits, 1u);
  if (!refused.ok()) {
    EXPECT_EQ(refused.error().reason, "DEADLINE");
    EXPECT_NE(refused.error().message.find(fmt::format("{} (D)", sleeper_)), std::string::npos);
  }
  auto deleted = engine_->DeleteProbes({probes[0].id, probes[1].id});
  EXPECT_TRUE(deleted.ok() || deleted.error().reason == "DEADLINE") << deleted.error().ToString();
  EXPECT_EQ(puppet_.Ask("call"), "2");
  WakeUp();
  EXPECT_TRUE(engine_->SetOptimization(false).ok());
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
  EXPECT_EQ(puppet_.Ask("call"), "2");
}

TEST_F(GiveUpTest, AProcessThatCannotBeStoppedIsReportedAndLeftClean) {
  Puppet puppet("sleeper");
  TargetId target = Attach(puppet);
  auto probes = Create(target, LinesFor(puppet));
  ASSERT_EQ(probes.size(), 2u);
  puppet.Send("alone");
  ASSERT_TRUE(Eventually([&] { return Sleeps(puppet.pid()); }));
  Result<DetachReport> left = DetachReport{};
  const auto first = Measure([&] { left = engine_->Detach(target); });
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().reason, "DEADLINE");
  EXPECT_NE(left.error().message.find(fmt::format("{} (D)", puppet.pid())), std::string::npos)
      << left.error().ToString();
  // It has shown that it will not stop: nobody waits for that as long again.
  EXPECT_LT(2 * Measure([&] { (void)engine_->Detach(target); }), first);
  EXPECT_LT(Measure([&] { engine_.reset(); }), first);
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  puppet.Send("w");
  EXPECT_EQ(puppet.ReadLine(), "awake 42");
}

TEST_F(GiveUpTest, AProcessThatWakesAgainIsATargetAsBefore) {
  Puppet puppet("sleeper");
  TargetId target = Attach(puppet);
  auto probes = Create(target, LinesFor(puppet));
  ASSERT_EQ(probes.size(), 2u);
  puppet.Send("alone");
  ASSERT_TRUE(Eventually([&] { return Sleeps(puppet.pid()); }));
  EXPECT_FALSE(engine_->Detach(target).ok());
  puppet.Send("w");
  EXPECT_EQ(puppet.ReadLine(), "awake 42");
  EXPECT_EQ(Counters(probes[0].id).hits, 1u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("call"), "2");
}

TEST_F(GiveUpTest, AByteThatCannotBeWrittenBackKeepsItsTarget) {
  Puppet puppet("immovable");
  TargetId target = Attach(puppet);
  auto probes = Create(target, LinesFor(puppet));
  ASSERT_EQ(probes.size(), 2u);
  EXPECT_EQ(puppet.Ask("freeze"), "0");
  Result<DetachReport> left = engine_->Detach(target);
  ASSERT_FALSE(left.ok());
  EXPECT_EQ(left.error().reason, "MEMORY_UNWRITABLE") << left.error().ToString();
  // Its traps go on being handled.
  EXPECT_TRUE(IsTraced(puppet.pid()));
  EXPECT_EQ(puppet.Ask("call"), "2");
  EXPECT_EQ(Counters(probes[0].id).hits, 1u);
  EXPECT_EQ(puppet.Ask("thaw"), "0");
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_FALSE(IsTraced(puppet.pid()));
  EXPECT_EQ(puppet.Ask("call"), "2");
}

}  // namespace
}  // namespace probed::engine

// Processes that end while something is being done with them: it is told as such, bounded in time,
// and neither the engine nor another target has anything of it. PROBED_TEST_ROUNDS makes it longer.

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <string>
#include <thread>

#include "base/clock.h"
#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

// Of what takes some 100 ms; whoever waits for a dead thread's next stop gives up after ten
// seconds.
constexpr uint64_t kLongest = 8'000'000'000;

class SuddenEndTest : public EngineTest, public testing::WithParamInterface<bool> {
 protected:
  SuddenEndTest() : EngineTest(Options()) {}
  static EngineOptions Options() {
    EngineOptions options = Optimizing();
    options.optimization.enabled = GetParam();
    return options;
  }

  std::vector<std::string> Lines(const Puppet& puppet) {
    return {fmt::format("p:t/in {}:work number=%di:u64", puppet.path()),
            fmt::format("r:t/out {}:work $retval", puppet.path())};
  }

  // False when it says that the process has ended; everything else is a failure.
  template <class Outcome>
  bool Goes(const Outcome& outcome) {
    if (outcome.ok()) return true;
    EXPECT_TRUE(IsEnd(outcome.error())) << outcome.error().ToString();
    return false;
  }
  static bool IsEnd(const Error& error) {
    static const std::set<std::string> kReasons{"PROCESS_GONE", "PROCESS_NOT_FOUND", "ZOMBIE",
                                                "TARGET_NOT_FOUND"};
    return kReasons.contains(error.reason);
  }

  bool DefineAll(TargetId target, const Puppet& puppet) {
    auto outcome = engine_->CreateProbes(target, Lines(puppet), {});
    if (!Goes(outcome)) return false;
    for (const auto& error : outcome->errors)
      EXPECT_TRUE(IsEnd(error.error)) << error.error.ToString();
    return outcome->errors.empty();
  }

  // A whole life as a target, until the process is there no more.
  bool LiveOnce(const Puppet& puppet) {
    auto target = engine_->Attach(puppet.pid(), {});
    if (!Goes(target) || !DefineAll(target->id, puppet)) return false;
    if (GetParam()) {
      EXPECT_TRUE(Goes(engine_->SetOptimization(false)));
      EXPECT_TRUE(Goes(engine_->SetOptimization(true)));
    }
    return Goes(engine_->Detach(target->id));
  }

  bool HasRunningTarget(pid_t pid) {
    const auto targets = engine_->ListTargets();
    return std::any_of(targets.begin(), targets.end(), [&](const auto& target) {
      return target.state == TargetState::kRunning && target.id.pid == pid;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Mechanism, SuddenEndTest, ::testing::Bool(), [](const auto& mechanism) {
  return mechanism.param ? "Jump" : "Breakpoint";
});

TEST_P(SuddenEndTest, KilledAtAnyMoment) {
  Puppet bystander("threads");
  const TargetId other = Attach(bystander);
  const ProbeId probe = Create(other, Lines(bystander)).front().id;
  uint64_t calls = 0;
  const int rounds = Rounds(25);
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    Puppet puppet("threads");
    ASSERT_EQ(puppet.Ask("6"), "running");
    std::thread killer([&] {
      ::usleep(static_cast<useconds_t>(round) * 2500 % 60'000);  // some moment
      ::kill(puppet.pid(), SIGKILL);
    });
    const uint64_t begin_ns = MonotonicNow();
    while (LiveOnce(puppet)) {
    }
    EXPECT_LT(MonotonicNow() - begin_ns, kLongest) << "waited for somebody who has ended";
    killer.join();
    const int status = puppet.Wait();
    EXPECT_TRUE(status == Puppet::kReapedByTracer ||
                (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        << status;
    EXPECT_TRUE(Eventually([&] { return !HasRunningTarget(puppet.pid()); })) << round;
    EXPECT_EQ(bystander.Ask("2 50"), "100");
    calls += 100;
    EXPECT_EQ(Counters(probe).hits, calls);
    (void)Drain();
  }
  EXPECT_EQ(Detach(other).warning, "");
  EXPECT_EQ(ChangedTextBytes(bystander.pid()), 0u);
}

// Some of those that are let go of end just then.
TEST_P(SuddenEndTest, ChildrenThatEndInADetach) {
  Puppet puppet("begetting");
  const int rounds = Rounds(12);
  ASSERT_EQ(puppet.Ask("4"), "running");
  uint64_t followed = 0;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const TargetId target = Attach(puppet, {.follow_children = true});
    const auto probes = Create(target, Lines(puppet));
    ASSERT_EQ(probes.size(), 2u);
    EXPECT_TRUE(Eventually([&] { return Counters(probes[0].id).hits > 20; }));
    followed += Counters(probes[0].id).hits;
    EXPECT_EQ(Detach(target).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
    EXPECT_TRUE(Eventually([&] {
      const auto targets = engine_->ListTargets();
      return std::none_of(targets.begin(), targets.end(),
                          [](const auto& each) { return each.state == TargetState::kRunning; });
    }));
    (void)Drain();
  }
  const std::string ended = puppet.Ask("rest");
  EXPECT_TRUE(ended.ends_with(" 0")) << ended;
  EXPECT_GT(followed, 0u);
  puppet.CloseInput();
  EXPECT_EQ(puppet.Wait(), 0);
}

}  // namespace
}  // namespace probed::engine

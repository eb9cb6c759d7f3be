// Return probes whose entry is a jump: what waits in the program's own memory when something
// happens. That their records are those of the trap path is in returns_test.cc.

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

class OptimizedReturnTest : public EngineTest {
 protected:
  OptimizedReturnTest() : EngineTest(Optimizing()) {}

  static std::string Return(const Puppet& puppet, const std::string& function,
                            const std::string& fetch = "$retval:s64") {
    return fmt::format("r:t/{} {}:{} {}", function, puppet.path(), function, fetch);
  }
};

TEST_F(OptimizedReturnTest, EntryAndReturnOfOneFunction) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId in = Define(target, fmt::format("p:t/in {}:recurse %di", puppet.path()));
  ProbeId out = DefineOptimized(target, Return(puppet, "recurse", "d=$arg1:s64 $retval:s64"));
  ASSERT_TRUE(BecomesOptimized(in));
  EXPECT_EQ(puppet.Ask("recurse 40"), "40");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 82u);
  for (uint64_t i = 0; i <= 40; ++i) {
    EXPECT_EQ(hits[i].probe, in);
    EXPECT_EQ(First(hits[i]), 40 - i);
    EXPECT_EQ(hits[41 + i].probe, out);
    EXPECT_EQ(First(hits[41 + i]), i);
    EXPECT_EQ(hits[41 + i].function, hits[i].ip);
  }
  EXPECT_EQ(Counters(in).hits, 41u);
  EXPECT_EQ(Counters(out).hits, 41u);
  EXPECT_EQ(Counters(out).recorded, 41u);
}

TEST_F(OptimizedReturnTest, WhatWaitsIsTakenOverByTheSwitch) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, Return(puppet, "wait_inside"));
  EXPECT_EQ(puppet.Ask("wait 1"), "1");
  EXPECT_EQ(Counters(probe).hits, 1u);
  ASSERT_TRUE(engine_->SetOptimization(false).ok());
  EXPECT_EQ(Counters(probe).hits, 1u);
  EXPECT_EQ(puppet.Ask("look"), "1");
  EXPECT_EQ(puppet.Ask("done"), "2");
  EXPECT_EQ(Counters(probe).hits, 1u);
  EXPECT_EQ(Counters(probe).recorded, 1u);
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(First(hits[0]), 2u);
}

TEST_F(OptimizedReturnTest, DetachGivesReturnAddressesBack) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  DefineOptimized(target, Return(puppet, "wait_inside"));
  EXPECT_EQ(puppet.Ask("wait 1"), "1");
  auto report = Detach(target);
  EXPECT_EQ(report.warning, "");
  EXPECT_EQ(report.returns_restored, 1u);
  EXPECT_EQ(puppet.Ask("look"), "0");
  EXPECT_EQ(puppet.Ask("done"), "2");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

TEST_F(OptimizedReturnTest, BothProcessesReturnFromAFork) {
  for (bool follow : {false, true}) {
    Puppet puppet("control");
    TargetId target = Attach(puppet, {.follow_children = follow});
    ProbeId probe = DefineOptimized(target, Return(puppet, "fork_inside"));
    EXPECT_EQ(puppet.Ask("forkin 3"), "10");
    EXPECT_EQ(puppet.Ask("recurse 3"), "3");
    EXPECT_EQ(DrainHits().size(), follow ? 2u : 1u);
    EXPECT_EQ(Counters(probe).hits, 1u);
    EXPECT_EQ(Counters(probe).missed, 0u);
  }
}

TEST_F(OptimizedReturnTest, AStormOfSignalsFindsTheProgramInItsOwnCode) {
  events_.reset();
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  Define(target, fmt::format("p:t/in {}:spin_work %di", puppet.path()));
  ProbeId probe = DefineOptimized(target, Return(puppet, "spin_work"));
  std::string answer = puppet.Ask("storm 1000");
  unsigned long spins = 0, strange = 1;
  int enough = 0;
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &enough, &strange), 3) << answer;
  EXPECT_EQ(enough, 1);
  EXPECT_EQ(strange, 0u);
  ProbeCounters counters = Counters(probe);
  EXPECT_EQ(counters.hits, spins);
  EXPECT_EQ(counters.recorded, spins);
  EXPECT_EQ(counters.missed, 0u);
}

TEST_F(OptimizedReturnTest, SixtyFourThreadsRunThroughManyChanges) {
  events_ = engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  ASSERT_EQ(puppet.Ask("64"), "running");
  const char* rounds = std::getenv("PROBED_TEST_ROUNDS");
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 3); ++round) {
    ProbeId probe = DefineOptimized(target, Return(puppet, "work"));
    ASSERT_TRUE(engine_->SetOptimization(false).ok());
    ASSERT_TRUE(engine_->SetOptimization(true).ok());
    ASSERT_TRUE(BecomesOptimized(probe));
    ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  }
  DefineOptimized(target, Return(puppet, "work"));
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("end"), "0 wrong");
}

// Every frame that can be is overwritten while the program runs. It may die of that.
TEST_F(OptimizedReturnTest, AProgramThatScribblesOnItsFramesHarmsNobodyElse) {
  Puppet bystander("control");
  TargetId other = Attach(bystander);
  ProbeId probe = DefineOptimized(other, Return(bystander, "recurse"));
  const char* rounds = std::getenv("PROBED_TEST_ROUNDS");
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 10); ++round) {
    Puppet puppet("scribbler");
    TargetId target = Attach(puppet);
    DefineOptimized(target, Return(puppet, "work", "$arg1 $retval"));
    puppet.Send(fmt::format("{}", round + 1));
    if (round % 2 == 0) (void)engine_->SetOptimization(false);
    (void)engine_->SetOptimization(true);
    (void)puppet.ReadLine();
    (void)engine_->Detach(target);
    EXPECT_EQ(bystander.Ask("recurse 100"), "100");
    EXPECT_EQ(DrainHits().empty(), false);
  }
  EXPECT_TRUE(BecomesOptimized(probe));
  ProbeCounters counters = Counters(probe);
  EXPECT_EQ(counters.recorded, counters.hits);
}

// In a process of its own: attaches, waits for the jump, says so and sleeps until it is killed.
[[noreturn]] void TraceUntilKilled(pid_t pid, const std::string& line, int ready) {
  auto engine = Engine::Create(Optimizing());
  auto target = engine.ok() ? (*engine)->Attach(pid, {}) : Result<TargetInfo>(engine.error());
  if (!target.ok()) ::_exit(1);
  auto outcome = (*engine)->CreateProbes(target->id, {line}, {});
  if (!outcome.ok() || outcome->probes.size() != 1) ::_exit(2);
  while ((*engine)->GetProbe(outcome->probes[0].id)->mechanism != Mechanism::kOptimized)
    ::usleep(1000);
  if (::write(ready, "x", 1) != 1) ::_exit(3);
  while (true)
    ::pause();
}

TEST(OptimizedReturnDeathTest, ReturnsAloneWhenTheDaemonIsKilled) {
  Puppet puppet("control");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  std::string line = fmt::format("r:t/x {}:wait_inside $retval", puppet.path());
  pid_t daemon = ::fork();
  if (daemon == 0) {
    ::close(ready[0]);
    TraceUntilKilled(puppet.pid(), line, ready[1]);
  }
  ::close(ready[1]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ::close(ready[0]);
  EXPECT_EQ(puppet.Ask("wait 1"), "1");
  ::kill(daemon, SIGKILL);
  ASSERT_EQ(::waitpid(daemon, nullptr, 0), daemon);
  EXPECT_EQ(puppet.Ask("look"), "1");
  EXPECT_EQ(puppet.Ask("done"), "2");
  EXPECT_EQ(puppet.Ask("wait 3"), "0");
  EXPECT_EQ(puppet.Ask("done"), "4");
}

}  // namespace
}  // namespace probed::engine

// Signals see the program's own addresses, and the program's own traps stay its own.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

TEST_F(EngineTest, AnIgnoredSigtrapIsIgnoredAgainAfterwards) {
  Puppet puppet("control");
  ASSERT_EQ(puppet.Ask("settrap 1"), "1 0");
  TargetId target = Attach(puppet, {.follow_children = false});
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(puppet.Ask(fmt::format("raise {}", SIGTRAP)), "0");  // still no harm
  EXPECT_EQ(puppet.Ask("exec"), "ready");
  EXPECT_EQ(puppet.Ask("recurse 2"), "2");
  EXPECT_EQ(Counters(probe).hits, 7u);
  Detach(target);
  EXPECT_EQ(puppet.Ask("showtrap"), "1 0");
}

TEST_F(EngineTest, ABlockedSigtrapStaysBlockedAndKeepsItsHandler) {
  Puppet puppet("control");
  ASSERT_EQ(puppet.Ask("settrap 2"), "2 1");
  TargetId target = Attach(puppet);
  Create(target, {fmt::format("p:t/x {}:recurse", puppet.path()),
                  fmt::format("r:t/y {}:recurse", puppet.path())});
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(DrainHits().size(), 8u);
  EXPECT_EQ(puppet.Ask("showtrap"), "2 1");
  EXPECT_EQ(puppet.Ask("settrap 5"), "2 0");
  EXPECT_EQ(puppet.Ask("recurse 1"), "1");
  EXPECT_EQ(puppet.Ask("showtrap"), "2 0");
  EXPECT_EQ(puppet.Ask("settrap 2"), "2 1");
  Detach(target);
  EXPECT_EQ(puppet.Ask("showtrap"), "2 1");
}

TEST_F(EngineTest, AFullMaskStaysFull) {
  Puppet puppet("control");
  ASSERT_EQ(puppet.Ask("settrap 3"), "2 0");
  TargetId target = Attach(puppet);
  Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(puppet.Ask("settrap 4"), "2 1");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(puppet.Ask("showtrap"), "2 1");
}

// The kernel takes the trap and the signal that waits for one and the same.
TEST_F(EngineTest, ASentTrapThatIsBlockedOutlivesTheTrapsOfProbes) {
  Puppet puppet("control");
  ASSERT_EQ(puppet.Ask("settrap 2"), "2 1");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask(fmt::format("raise {}", SIGTRAP)), "0");  // to the thread
  EXPECT_EQ(::kill(puppet.pid(), SIGTRAP), 0);                   // to the process
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(Counters(probe).hits, 8u);
  EXPECT_EQ(puppet.Ask("showtrap"), "2 1");
  EXPECT_EQ(puppet.Ask("traps"), "0");
  EXPECT_EQ(puppet.Ask("settrap 5"), "2 0");
  EXPECT_EQ(puppet.Ask("traps"), "2");
}

// One that is made full while probes are hit, out of our sight.
TEST_F(EngineTest, AFullMaskIsPutBackWhenItMatters) {
  Puppet puppet("control");
  TargetId target = Attach(puppet, {.follow_children = false});
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  ASSERT_EQ(puppet.Ask("settrap 4"), "0 1");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(puppet.Ask("exec"), "ready");
  EXPECT_EQ(puppet.Ask("showtrap"), "0 1");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(Counters(probe).hits, 8u);
  Detach(target);
  EXPECT_EQ(puppet.Ask("showtrap"), "0 1");

  Puppet second("control");
  target = Attach(second);
  Define(target, fmt::format("p:t/x {}:recurse", second.path()));
  ASSERT_EQ(second.Ask("settrap 4"), "0 1");
  EXPECT_EQ(second.Ask("recurse 3"), "3");
  EXPECT_EQ(second.Ask(fmt::format("raise {}", SIGTRAP)), "0");  // would kill it
  EXPECT_EQ(second.Ask("showtrap"), "0 1");
  EXPECT_EQ(second.Ask("recurse 3"), "3");
  EXPECT_EQ(second.Ask("showtrap"), "0 1");
  Detach(target);
  EXPECT_EQ(second.Ask("showtrap"), "0 1");
}

TEST_F(EngineTest, AFullMaskIsPutBackAtTheEnd) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  ASSERT_EQ(puppet.Ask("settrap 4"), "0 1");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  Detach(target);
  EXPECT_EQ(puppet.Ask("showtrap"), "0 1");
}

class SignalTest : public EngineTest {
 protected:
  ProbeId Probe(const std::string& kind, const std::string& symbol) {
    return Define(target_, fmt::format("{}:t/x {}:{}", kind, puppet_.path(), symbol));
  }
  Puppet puppet_{"control"};
  TargetId target_ = Attach(puppet_);
};

TEST_F(SignalTest, AFaultOfAProbedInstructionShowsItsOwnAddress) {
  ProbeId probe = Probe("p", "load_byte");
  // Value 0 after one fault at exactly load_byte; the restarted instruction hits again.
  EXPECT_EQ(puppet_.Ask("fault"), "0 1 1");
  EXPECT_EQ(Counters(probe).hits, 2u);
}

TEST_F(SignalTest, HandlersNeverSeeOurCodeAndHitsAreExact) {
  ProbeId entry = Probe("p", "spin_work");
  ProbeId exit = Define(target_, fmt::format("r:t/r {}:spin_work", puppet_.path()));
  unsigned long spins = 0, strange = 0;
  int done = 0;
  std::string answer = puppet_.Ask("spin 300");
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &done, &strange), 3) << answer;
  EXPECT_EQ(done, 1);
  EXPECT_EQ(strange, 0u);
  EXPECT_EQ(Counters(entry).hits, spins);
  EXPECT_EQ(Counters(exit).recorded, spins);
}

// A hit that a signal interrupted before its instruction ran is one hit, whatever stands there when
// the thread comes back.
TEST_F(SignalTest, HitsAreExactWhileJumpsComeAndGo) {
  ProbeId entry = Probe("p", "spin_work");
  std::atomic<bool> end = false;
  std::thread switcher([&] {
    for (bool enabled = true; !end; enabled = !enabled)
      (void)engine_->SetOptimization(enabled);
  });
  std::string answer = puppet_.Ask("spin 1000");
  end = true;
  switcher.join();
  unsigned long spins = 0, strange = 0;
  int done = 0;
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &done, &strange), 3) << answer;
  EXPECT_EQ(strange, 0u);
  EXPECT_EQ(Counters(entry).hits, spins);
}

TEST_F(SignalTest, HandlersNeverSeeCopiesThatMustBeLeftByTheTracer) {
  ProbeId popf = Probe("p", "the_popf");
  ProbeId call = Probe("p", "the_stack_call");
  unsigned long spins = 0, strange = 0;
  int done = 0;
  std::string answer = puppet_.Ask("spin 300");
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &done, &strange), 3) << answer;
  EXPECT_EQ(done, 1);
  EXPECT_EQ(strange, 0u);
  EXPECT_EQ(Counters(popf).hits, spins);
  EXPECT_EQ(Counters(call).hits, spins);
}

TEST_F(SignalTest, ATrapSentToAThreadBehindASiteIsTheProgramsOwn) {
  ProbeId probe = Probe("p", "the_nop");
  for (unsigned round = 1; round <= 20; ++round) {
    puppet_.Send("stand");
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (Counters(probe).hits < round && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    ASSERT_EQ(::kill(puppet_.pid(), SIGTRAP), 0);
    ASSERT_EQ(puppet_.ReadLine(), std::to_string(round));
    ASSERT_EQ(Counters(probe).hits, round);
  }
}

TEST_F(SignalTest, TheProgramsOwnBreakpointsStayItsOwn) {
  Probe("p", "recurse");
  EXPECT_EQ(puppet_.Ask("int3 5"), "5");
}

// Its signal is blocked while it runs, so each hit there makes the kernel forget it. It was put in
// place after the attach.
TEST_F(SignalTest, AProbedTrapHandlerStays) {
  ProbeId entry = Probe("p", "on_trap");
  ProbeId exit = Define(target_, fmt::format("r:t/r {}:on_trap", puppet_.path()));
  EXPECT_EQ(puppet_.Ask("int3 5"), "5");
  EXPECT_EQ(puppet_.Ask(fmt::format("raise {}", SIGTRAP)), "0");
  EXPECT_EQ(puppet_.Ask("traps"), "6");
  EXPECT_EQ(puppet_.Ask("showtrap"), "2 0");
  EXPECT_EQ(Counters(entry).hits, 6u);
  EXPECT_EQ(Counters(exit).recorded, 6u);
}

TEST_F(SignalTest, SigfpeNamesTheProbedInstruction) {
  ProbeId probe = Probe("p", "the_division");
  EXPECT_EQ(puppet_.Ask("divide 0"), "1 1");
  EXPECT_EQ(Counters(probe).hits, 1u);
}

TEST_F(SignalTest, AProgramThatStepsItselfSeesItsOwnStepsOnly) {
  std::string unprobed = puppet_.Ask("step 4");  // 7 instructions run with the flag set
  Puppet fresh("control");
  TargetId target = Attach(fresh);
  ProbeId probe = Define(target, fmt::format("p:t/x {}:the_call", fresh.path()));
  ProbeId first = Define(target, fmt::format("p:t/y {}:the_first_popf", fresh.path()));
  ProbeId last = Define(target, fmt::format("p:t/z {}:the_last_popf", fresh.path()));
  EXPECT_EQ(fresh.Ask("step 4"), unprobed);
  EXPECT_EQ(Counters(probe).hits, 1u);
  EXPECT_EQ(Counters(first).hits, 1u);
  EXPECT_EQ(Counters(last).hits, 1u);
}

TEST_F(SignalTest, ASyscallInstructionCanBeProbed) {
  ProbeId probe = Probe("p", "the_syscall");
  EXPECT_EQ(puppet_.Ask("syscall"), "1");
  EXPECT_EQ(puppet_.Ask("fork 1"), "42");
  EXPECT_EQ(Counters(probe).hits, 2u);
}

}  // namespace
}  // namespace probed::engine

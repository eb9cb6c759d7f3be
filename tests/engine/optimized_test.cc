// Jumps in the place of breakpoints: counts and values are those of the trap path, and nothing of
// them is left.

#include <fmt/format.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>

#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "engine/lang/payload.h"
#include "engine/sys/proc.h"
#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

class OptimizedTest : public EngineTest {
 protected:
  OptimizedTest() : EngineTest(Optimizing()) {}

  Mechanism MechanismOf(ProbeId id) { return engine_->GetProbe(id)->mechanism; }
  std::string ReasonOf(ProbeId id) { return engine_->GetProbe(id)->reason; }
};

TEST_F(OptimizedTest, HitsHaveTheProgramsCountAndValues) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe =
      DefineOptimized(target, fmt::format("p:t/in {}:work %di:u64 +0(%si):string", puppet.path()));
  EXPECT_EQ(puppet.Ask("1000"), "1000 1103000");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 1000u);
  for (size_t i = 0; i < hits.size(); ++i) {
    EXPECT_EQ(First(hits[i]), i);
    EXPECT_EQ(Text(hits[i], 1), "hello world");
    EXPECT_EQ(hits[i].tid, puppet.pid());
    EXPECT_STREQ(hits[i].comm.data(), "counter");
    EXPECT_TRUE(i == 0 || hits[i - 1].monotonic_ns <= hits[i].monotonic_ns);
  }
  ProbeCounters counters = Counters(probe);
  EXPECT_EQ(counters.hits, 1000u);
  EXPECT_EQ(counters.recorded, 1000u);
  EXPECT_EQ(counters.lost, 0u);
  EXPECT_EQ(engine_->ListSites(target).front().hits, 1000u);
  DetachReport report = Detach(target);
  EXPECT_EQ(report.warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("10"), "1010 1104130");
}

TEST_F(OptimizedTest, ADryRunTellsWhatIsInTheWay) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  auto foretell = [&](const std::string& kind, bool optimize) {
    auto outcome =
        engine_->CreateProbes(target, {fmt::format("{}:t/in {}:work", kind, puppet.path())},
                              {.validate_only = true, .optimize = optimize});
    return outcome.ok() && outcome->probes.size() == 1 ? outcome->probes.front().reason : "";
  };
  EXPECT_EQ(foretell("p", true), "it becomes a jump if its code allows that");
  EXPECT_EQ(foretell("p", false), "a probe here is not to be optimized");
  EXPECT_EQ(foretell("r", true), "it becomes a jump if its code allows that");
  EXPECT_EQ(foretell("r10", true), "a small limit of outstanding returns is counted at a trap");
}

TEST_F(OptimizedTest, NothingIsLeftOfItsMemory) {
  Puppet puppet("counter");
  auto maps = [&] {
    std::ifstream file(fmt::format("/proc/{}/maps", puppet.pid()));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  std::string before = maps();
  TargetId target = Attach(puppet);
  DefineOptimized(target, fmt::format("p:t/in {}:work", puppet.path()));
  EXPECT_NE(maps().find("/memfd:probed-ring"), std::string::npos);
  Detach(target);
  EXPECT_EQ(maps(), before);
}

TEST_F(OptimizedTest, WhatNobodyReadsIsOnlyCounted) {
  events_.reset();
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:work %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("1000"), "1000 1103000");
  EXPECT_EQ(Counters(probe).hits, 1000u);
  EXPECT_EQ(Counters(probe).recorded, 1000u);
  EXPECT_EQ(engine_->Info().events_published, 0u);
  events_ = engine_->Subscribe({.max_queued_bytes = 1u << 30, .wants_hit = {}, .wants_notice = {}});
  EXPECT_EQ(puppet.Ask("10"), "1010 1104130");
  EXPECT_EQ(DrainHits().size(), 10u);
  EXPECT_EQ(Counters(probe).hits, 1010u);
  events_.reset();
  EXPECT_EQ(engine_->Info().events_published, 10u);
  EXPECT_EQ(puppet.Ask("1000"), "2010 2207130");
  EXPECT_EQ(Counters(probe).hits, 2010u);
  EXPECT_EQ(engine_->Info().events_published, 10u);
}

TEST_F(OptimizedTest, FaultsOfOursLeaveTheProgramsSignalsAlone) {
  for (int how = 1; how <= 4; ++how) {
    Puppet puppet("control");
    std::string before = puppet.Ask(fmt::format("setsegv {}", how));
    TargetId target = Attach(puppet);
    ProbeId probe =
        DefineOptimized(target, fmt::format("p:t/in {}:recurse +0(%di):string", puppet.path()));
    EXPECT_EQ(puppet.Ask("recurse 50"), "50");
    EXPECT_EQ(Counters(probe).hits, 51u);
    EXPECT_EQ(puppet.Ask("showsegv"), before) << how;
    EXPECT_EQ(MechanismOf(probe), Mechanism::kOptimized);
  }
}

// The program's loads raise SIGBUS then where an operand is not aligned, and so do ours.
TEST_F(OptimizedTest, ValuesAreTheSameUnderTheAlignmentCheck) {
  Puppet puppet("harsh");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(
      target, fmt::format("p:t/in {}:look +0(%si):u32 +0(%di):string", puppet.path()));
  EXPECT_EQ(puppet.Ask("strict 20"), "20");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 20u);
  for (const auto& hit : hits) {
    EXPECT_EQ(First(hit), 0x01020304u);
    EXPECT_EQ(Text(hit, 1), "not aligned");
  }
  EXPECT_EQ(Counters(probe).hits, 20u);
  EXPECT_EQ(MechanismOf(probe), Mechanism::kOptimized);
}

// The jump is not written over the instruction that a handler, wherever its frame is, returns to.
TEST_F(OptimizedTest, HandlersReturnIntoNoJump) {
  for (int kind = 0; kind <= 2; ++kind) {
    Puppet puppet("harsh");
    TargetId target = Attach(puppet);
    ASSERT_EQ(puppet.Ask(fmt::format("handle {}", kind)), "inside");
    ProbeId probe = Define(target, fmt::format("p:t/in {}:late", puppet.path()));
    EXPECT_TRUE(Eventually([&] {
      return ReasonOf(probe).find("a signal handler may return") != std::string::npos;
    })) << kind
        << ": " << ReasonOf(probe);
    EXPECT_EQ(puppet.Ask("go on"), "0");
    EXPECT_EQ(puppet.Ask("strict 1"), "1");
  }
}

// Its registers cannot be had back, so it is told what happened where it is.
TEST_F(OptimizedTest, AThreadWhoseStackIsUnmappedGetsItsSignal) {
  Puppet puppet("harsh");
  TargetId target = Attach(puppet);
  DefineOptimized(target, fmt::format("p:t/in {}:look +0(%di):string +1(%di):string "
                                      "+2(%di):string +3(%di):string",
                                      puppet.path()));
  EXPECT_EQ(puppet.Ask("vanish 20"), "20");
}

TEST_F(OptimizedTest, ALimitedProgramKeepsItsBreakpoints) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  rlimit before{};
  ASSERT_EQ(::prlimit(puppet.pid(), RLIMIT_NOFILE, nullptr, &before), 0);
  rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::prlimit(puppet.pid(), RLIMIT_NOFILE, &none, nullptr), 0);
  ProbeId probe = Define(target, fmt::format("p:t/in {}:work %di", puppet.path()));
  EXPECT_TRUE(Eventually([&] {
    return ReasonOf(probe).find("may not make shared memory") != std::string::npos;
  })) << ReasonOf(probe);
  EXPECT_EQ(MechanismOf(probe), Mechanism::kBoosted);
  EXPECT_EQ(puppet.Ask("10"), "10 1130");
  EXPECT_EQ(Counters(probe).hits, 10u);
}

TEST_F(OptimizedTest, UnderSeccompItStaysABreakpoint) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  Define(target, fmt::format("p:t/first {}:take_text", puppet.path()));  // has memory for copies
  ASSERT_EQ(puppet.Ask("seccomp"), "0");
  auto outcome =
      engine_->CreateProbes(target, {fmt::format("p:t/in {}:recurse", puppet.path())}, {});
  ASSERT_TRUE(outcome.ok());
  if (outcome->probes.empty()) return;
  ProbeId probe = outcome->probes.front().id;
  EXPECT_EQ(puppet.Ask("recurse 5"), "5");
  EXPECT_EQ(Counters(probe).hits, 6u);
}

TEST_F(OptimizedTest, AnExecTakesItAwayAndTheNextImageGetsIt) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:recurse %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("recurse 5"), "5");
  EXPECT_EQ(puppet.Ask("exec"), "ready");
  EXPECT_TRUE(BecomesOptimized(probe));
  EXPECT_EQ(puppet.Ask("recurse 2"), "2");
  EXPECT_EQ(Counters(probe).hits, 9u);
  EXPECT_EQ(DrainHits().size(), 9u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

TEST_F(OptimizedTest, TheSwitchChangesSitesThatExist) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:work %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("5"), "5 540");
  ASSERT_TRUE(engine_->SetOptimization(false).ok());
  EXPECT_EQ(MechanismOf(probe), Mechanism::kBoosted);
  EXPECT_EQ(ReasonOf(probe), "optimization is off");
  EXPECT_EQ(puppet.Ask("5"), "10 1080");
  ASSERT_TRUE(engine_->SetOptimization(true).ok());
  EXPECT_TRUE(BecomesOptimized(probe));
  EXPECT_EQ(puppet.Ask("5"), "15 1620");
  EXPECT_EQ(Counters(probe).hits, 15u);
  EXPECT_EQ(DrainHits().size(), 15u);
}

TEST_F(OptimizedTest, ASecondProbeOnTheSiteGetsItsShare) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId first = DefineOptimized(target, fmt::format("p:t/one {}:work %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("3"), "3 318");
  ProbeId second = DefineOptimized(target, fmt::format("p:t/two {}:work %si", puppet.path()));
  EXPECT_EQ(puppet.Ask("4"), "7 746");
  EXPECT_EQ(Counters(first).hits, 7u);
  EXPECT_EQ(Counters(second).hits, 4u);
  ASSERT_TRUE(engine_->SetProbesEnabled({first}, false).ok());
  EXPECT_EQ(puppet.Ask("2"), "9 956");
  ASSERT_TRUE(engine_->DeleteProbes({first}).ok());
  EXPECT_TRUE(BecomesOptimized(second));
  EXPECT_EQ(puppet.Ask("5"), "14 1496");
  EXPECT_EQ(Counters(second).hits, 11u);
  EXPECT_EQ(DrainHits().size(), 18u);
}

// divide begins with three bytes and two more, which a jump needs together.
TEST_F(OptimizedTest, AProbeInsideTheRegionMakesItABreakpoint) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId outer = DefineOptimized(target, fmt::format("p:t/outer {}:divide", puppet.path()));
  ProbeId inner = Define(target, fmt::format("p:t/inner {}:divide+3", puppet.path()));
  EXPECT_EQ(MechanismOf(outer), Mechanism::kBoosted);
  EXPECT_EQ(puppet.Ask("divide 2"), "0 0");
  EXPECT_EQ(Counters(outer).hits, 1u);
  EXPECT_EQ(Counters(inner).hits, 1u);
  ASSERT_TRUE(engine_->DeleteProbes({inner}).ok());
  EXPECT_TRUE(BecomesOptimized(outer));
  EXPECT_EQ(puppet.Ask("divide 3"), "0 0");
  EXPECT_EQ(Counters(outer).hits, 2u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

// Its handler is told of the second instruction of the region, and returns to it.
TEST_F(OptimizedTest, AFaultInTheMiddleOfTheRegionIsThePrograms) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:load_late", puppet.path()));
  EXPECT_EQ(puppet.Ask("faultlate"), "0 1 1");
  EXPECT_EQ(Counters(probe).hits, 1u);
  EXPECT_EQ(MechanismOf(probe), Mechanism::kBoosted);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

TEST_F(OptimizedTest, AProgramThatStepsItselfSeesItsOwnInstructions) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  std::string bare = puppet.Ask("step 1");
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:plain", puppet.path()));
  unsigned long steps = 0, strange = 1, bare_steps = 0;
  long result = 0;
  std::sscanf(bare.c_str(), "%ld %lu", &result, &bare_steps);
  std::string answer = puppet.Ask("step 1");
  ASSERT_EQ(std::sscanf(answer.c_str(), "%ld %lu %lu", &result, &steps, &strange), 3) << answer;
  EXPECT_EQ(steps, 2 * bare_steps);
  EXPECT_EQ(strange, 0u);
  EXPECT_EQ(Counters(probe).hits, 1u);
}

TEST_F(OptimizedTest, EveryThreadIsNamed) {
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:work %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("32 300"), "9600");
  std::map<int, uint64_t> per_thread;
  std::map<int, uint64_t> last;
  for (const auto& hit : DrainHits()) {
    ++per_thread[hit.tid];
    EXPECT_EQ(First(hit), last[hit.tid] + 1);
    last[hit.tid] = First(hit);
  }
  EXPECT_EQ(per_thread.size(), 32u);
  for (const auto& [tid, count] : per_thread)
    EXPECT_EQ(count, 300u) << tid;
  EXPECT_EQ(Counters(probe).hits, 9600u);
}

TEST_F(OptimizedTest, ComesAndGoesUnderRunningThreads) {
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  puppet.Send("8 30000");
  for (int round = 0; round < 20; ++round) {
    ProbeId probe =
        DefineOptimized(target, fmt::format("p:t/in{} {}:work %di", round, puppet.path()));
    ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  }
  EXPECT_EQ(puppet.ReadLine(), "240000");
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
}

TEST_F(OptimizedTest, OneInSoManyStaysSoWhenTheMechanismChanges) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ASSERT_TRUE(engine_->SetOptimization(false).ok());
  auto created = Create(target, {fmt::format("p:t/x {}:recurse %di", puppet.path())},
                        {.sampling = {.every = 10}});
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(puppet.Ask("recurse 6"), "6");  // seven hits, 6 to 0, each time
  ASSERT_TRUE(engine_->SetOptimization(true).ok());
  ASSERT_TRUE(BecomesOptimized(created.front().id));
  EXPECT_EQ(puppet.Ask("recurse 6"), "6");
  ASSERT_TRUE(engine_->SetOptimization(false).ok());
  EXPECT_EQ(puppet.Ask("recurse 6"), "6");
  std::vector<uint64_t> values;
  for (const auto& hit : DrainHits())
    values.push_back(First(hit));
  EXPECT_EQ(values, (std::vector<uint64_t>{6, 3, 0})) << "hits 0, 10 and 20";
  EXPECT_EQ(Counters(created.front().id).sampled_out, 18u);
}

TEST_F(OptimizedTest, HitsOfAProgramThatHasEndedHaveItsName) {
  for (int i = 0; i < 10; ++i) {
    Puppet puppet("control");
    TargetId target = Attach(puppet);
    DefineOptimized(target, fmt::format("p:t/x {}:recurse %di", puppet.path()));
    std::string name = sys::ReadComm(puppet.pid());
    ASSERT_FALSE(name.empty());
    EXPECT_EQ(puppet.Ask("recurse 9"), "9");
    ::kill(puppet.pid(), SIGKILL);
    puppet.Wait();
    auto hits = DrainHits();
    ASSERT_EQ(hits.size(), 10u);
    for (const auto& hit : hits)
      EXPECT_STREQ(hit.comm.data(), name.c_str());
  }
}

TEST_F(OptimizedTest, SixtyFourThreadsRunThroughManyChanges) {
  events_ = engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  ASSERT_EQ(puppet.Ask("64"), "running");
  const char* rounds = std::getenv("PROBED_TEST_ROUNDS");  // more take long on few processors
  for (int round = 0; round < (rounds != nullptr ? std::atoi(rounds) : 3); ++round) {
    ProbeId probe =
        DefineOptimized(target, fmt::format("p:t/in{} {}:work %di", round, puppet.path()));
    ASSERT_TRUE(engine_->SetOptimization(false).ok());
    ASSERT_TRUE(engine_->SetOptimization(true).ok());
    ASSERT_TRUE(BecomesOptimized(probe));
    ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  }
  DefineOptimized(target, fmt::format("p:t/last {}:work %di", puppet.path()));
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("end"), "0 wrong");
}

// A timer of 200 us, faster than several steps may take, then signals as fast as they are handled.
class OptimizedStormTest : public OptimizedTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Signals, OptimizedStormTest, testing::Values("storm 1000", "hurry 300"));

TEST_P(OptimizedStormTest, SignalsFindTheProgramInItsOwnCode) {
  events_.reset();
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:spin_work %di", puppet.path()));
  std::string answer = puppet.Ask(GetParam());
  unsigned long spins = 0, strange = 1;
  int enough = 0;
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &enough, &strange), 3) << answer;
  EXPECT_EQ(enough, 1);
  EXPECT_EQ(strange, 0u);
  EXPECT_EQ(Counters(probe).hits, spins);
}

TEST_F(OptimizedTest, SignalsFindTheProgramInItsOwnCode) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:spin_work %di", puppet.path()));
  std::string answer = puppet.Ask("spin 100");
  unsigned long spins = 0, strange = 1;
  int enough = 0;
  ASSERT_EQ(std::sscanf(answer.c_str(), "%lu %d %lu", &spins, &enough, &strange), 3) << answer;
  EXPECT_EQ(enough, 1);
  EXPECT_EQ(strange, 0u);
  ProbeCounters counters = Counters(probe);
  EXPECT_EQ(counters.hits, spins);
  EXPECT_EQ(MechanismOf(probe), Mechanism::kOptimized);
}

TEST_F(OptimizedTest, AFollowedChildHasItsOwnRing) {
  Puppet puppet("control");
  TargetId target = Attach(puppet, {.follow_children = true});
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:recurse %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("fork"), "42");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  std::map<int, int> by_process;
  for (const auto& hit : DrainHits())
    ++by_process[hit.target.pid];
  EXPECT_EQ(by_process.size(), 2u);
  EXPECT_EQ(by_process[puppet.pid()], 4);
  EXPECT_EQ(Counters(probe).hits, 10u);
}

TEST_F(OptimizedTest, AChildThatIsNotFollowedIsClean) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = DefineOptimized(target, fmt::format("p:t/in {}:recurse %di", puppet.path()));
  EXPECT_EQ(puppet.Ask("fork"), "42");
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
  EXPECT_EQ(Counters(probe).hits, 4u);
}

}  // namespace
}  // namespace probed::engine

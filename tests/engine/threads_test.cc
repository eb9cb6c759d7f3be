// Many threads on one site.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

// Both with the restartable-sequences area of the C library and without one.
TEST_F(EngineTest, RecordsNameTheCpuOfTheThread) {
  for (const char* registered : {"1", "0"}) {
    ::setenv("GLIBC_TUNABLES", fmt::format("glibc.pthread.rseq={}", registered).c_str(), 1);
    Puppet puppet("control");
    ::unsetenv("GLIBC_TUNABLES");
    TargetId target = Attach(puppet);
    Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
    for (unsigned cpu = 0; cpu < std::min(2u, std::thread::hardware_concurrency()); ++cpu) {
      ASSERT_EQ(puppet.Ask(fmt::format("pin {}", cpu)), "0");
      EXPECT_EQ(puppet.Ask("recurse 20"), "20");
      auto hits = DrainHits();
      EXPECT_EQ(hits.size(), 21u);
      for (const auto& hit : hits)
        EXPECT_EQ(hit.cpu, cpu);
    }
  }
}

TEST_F(EngineTest, ThirtyTwoThreadsOnOneSite) {
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  ProbeId entry = Define(target, fmt::format("p:t/in {}:work %di", puppet.path()));
  ProbeId exit = Define(target, fmt::format("r:t/out {}:work $retval", puppet.path()));
  EXPECT_EQ(puppet.Ask("32 300"), "9600");
  EXPECT_EQ(Counters(entry).hits, 9600u);
  EXPECT_EQ(Counters(exit).recorded, 9600u);
  EXPECT_EQ(DrainHits().size(), 19200u);
}

// The kernel reports those stops first that are of the thread that was traced last.
TEST_F(EngineTest, OfManyBusyThreadsNoneStandsStill) {
  constexpr size_t kThreads = 24, kHits = 48'000, kLeast = 200;
  Puppet puppet("threads");
  ASSERT_EQ(puppet.Ask(std::to_string(kThreads)), "running");
  TargetId target = Attach(puppet);
  Create(
      target,
      {fmt::format("p:t/in {}:work", puppet.path()), fmt::format("r:t/out {}:work", puppet.path())},
      {.optimize = false});
  std::map<pid_t, size_t> hits;
  size_t seen = 0;
  auto is_enough = [&] {
    for (const auto& hit : DrainHits()) {
      ++hits[hit.tid];
      ++seen;
    }
    return seen > kHits;
  };
  ASSERT_TRUE(Eventually(is_enough));
  EXPECT_EQ(hits.size(), kThreads);
  for (const auto& [tid, count] : hits)
    EXPECT_GT(count, kLeast) << tid;
  EXPECT_EQ(puppet.Ask("end"), "0 wrong");
}

TEST_F(EngineTest, ProbesComeAndGoUnderRunningThreads) {
  Puppet puppet("threads");
  TargetId target = Attach(puppet);
  puppet.Send("8 3000");
  for (int round = 0; round < 20; ++round) {
    ProbeId probe = Define(target, fmt::format("p:t/in{} {}:work", round, puppet.path()));
    ProbeId exit = Define(target, fmt::format("r:t/out{} {}:work", round, puppet.path()));
    ASSERT_TRUE(engine_->DeleteProbes({probe, exit}).ok());
  }
  EXPECT_EQ(puppet.ReadLine(), "24000");
}

TEST_F(EngineTest, DetachUnderRunningThreads) {
  Puppet puppet("threads");
  puppet.Send("8 20000");
  for (int round = 0; round < 10; ++round) {
    TargetId target = Attach(puppet);
    Create(target, {fmt::format("p:t/in {}:work", puppet.path()),
                    fmt::format("r:t/out {}:work", puppet.path())});
    EXPECT_EQ(Detach(target).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  }
  EXPECT_EQ(puppet.ReadLine(), "160000");
}

}  // namespace
}  // namespace probed::engine

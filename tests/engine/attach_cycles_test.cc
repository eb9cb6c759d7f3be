// A program of many busy threads that is attached to and let go of again and again.
// PROBED_TEST_ROUNDS makes it longer: 1,000 rounds are what is demanded.

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

constexpr int kThreads = 64;

struct Counts {
  uint64_t rounds = 0, wrong = ~uint64_t{0};
};

Counts Ask(Puppet& puppet, const std::string& line) {
  Counts counts;
  std::sscanf(puppet.Ask(line).c_str(), "%lu %lu", &counts.rounds, &counts.wrong);
  return counts;
}

// Of the process's threads, those that are not traced and neither stopped nor ended.
int FreeThreads(pid_t pid) {
  int free = 0;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    std::ifstream file(task.path() / "status");
    char state = '?';
    int tracer = -1;
    for (std::string line; std::getline(file, line);) {
      (void)std::sscanf(line.c_str(), "State: %c", &state);
      (void)std::sscanf(line.c_str(), "TracerPid: %d", &tracer);
    }
    const bool runs = state == 'R' || state == 'S' || state == 'D';
    free += runs && tracer == 0;
  }
  return free;
}

class AttachCyclesTest : public EngineTest {
 protected:
  AttachCyclesTest() : EngineTest(Optimizing()) {
    events_ =
        engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  }

  std::vector<ProbeId> DefineAll(TargetId target, const Puppet& puppet) {
    std::vector<std::string> traps, jumps;
    for (const char* function : {"plain", "deep", "flags_back"})
      traps.push_back(fmt::format("p:t/{0} {1}:{0}", function, puppet.path()));
    for (const char* function : {"plain", "deep"})
      traps.push_back(fmt::format("r:t/{0}_end {1}:{0} $retval", function, puppet.path()));
    jumps = {fmt::format("p:t/quick {}:quick number=%di", puppet.path()),
             fmt::format("r:t/quick_end {}:quick $retval", puppet.path())};
    std::vector<ProbeId> ids;
    for (const auto& probe : Create(target, jumps))
      ids.push_back(probe.id);
    for (const auto& probe : Create(target, traps, {.optimize = false}))
      ids.push_back(probe.id);
    return ids;
  }

  bool AllHaveHit(const std::vector<ProbeId>& probes) {
    return Eventually([&] {
      for (ProbeId probe : probes)
        if (Counters(probe).hits == 0) return false;
      return true;
    });
  }
};

TEST_F(AttachCyclesTest, SixtyFourBusyThreadsGoOnAndNothingIsLeft) {
  Puppet puppet("busy");
  ASSERT_EQ(Ask(puppet, std::to_string(kThreads)).wrong, 0u);
  const int rounds = Rounds(20);
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    const Counts before = Ask(puppet, "count");
    TargetId target = Attach(puppet);
    const auto probes = DefineAll(target, puppet);
    ASSERT_EQ(probes.size(), 7u);
    EXPECT_TRUE(AllHaveHit(probes));
    EXPECT_TRUE(i % 4 != 0 || BecomesOptimized(probes[0]));
    EXPECT_EQ(Detach(target).warning, "");
    const Counts after = Ask(puppet, "count");
    EXPECT_EQ(after.wrong, 0u);
    // Each thread may be between a call and its count.
    const uint64_t most = after.rounds - before.rounds + kThreads;
    for (size_t probe = 0; probe < probes.size(); ++probe) {
      const ProbeCounters counters = Counters(probes[probe]);
      const bool recursive = probe == 3 || probe == 6;
      EXPECT_LE(counters.hits + counters.missed, recursive ? 4 * most : most) << probe;
    }
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u) << "round " << i;
    EXPECT_EQ(FreeThreads(puppet.pid()), kThreads + 1) << "round " << i;
  }
  puppet.CloseInput();
  EXPECT_EQ(puppet.Wait(), 0);
}

}  // namespace
}  // namespace probed::engine

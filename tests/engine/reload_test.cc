// A library that is loaded and unloaded again and again. PROBED_TEST_ROUNDS makes it longer: 1,000
// rounds are what is demanded.

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

// The program's own counts.
struct Calls {
  unsigned long first = 0, second = 0, wrong = ~0ul;
};

class ReloadTest : public EngineTest {
 protected:
  ReloadTest() : EngineTest(Optimizing()) {
    events_ =
        engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  }

  Calls Ask(const std::string& line) {
    Calls calls;
    std::sscanf(puppet_.Ask(line).c_str(), "%lu %lu %lu", &calls.first, &calls.second,
                &calls.wrong);
    return calls;
  }

  // The one function's probes stay breakpoints, the other's become jumps where they have the time.
  void DefineAll(TargetId target) {
    auto traps = Create(target,
                        {fmt::format("p:t/in {}:first number=%di:u64", library_),
                         fmt::format("r:t/out {}:first $retval", library_)},
                        {.optimize = false});
    auto jumps = Create(target, {fmt::format("p:t/jump_in {}:second number=%di:u64", library_),
                                 fmt::format("r:t/jump_out {}:second $retval", library_)});
    ASSERT_EQ(traps.size() + jumps.size(), 4u);
    probes_ = {traps[0].id, traps[1].id, jumps[0].id, jumps[1].id};
  }

  void ExpectEveryCall(const Calls& calls) {
    EXPECT_EQ(calls.wrong, 0u);
    for (size_t i = 0; i < probes_.size(); ++i) {
      const ProbeCounters counters = Counters(probes_[i]);
      EXPECT_EQ(counters.hits + counters.missed, i < 2 ? calls.first : calls.second) << i;
      EXPECT_EQ(counters.missed, 0u) << i;
    }
  }

  void ExpectState(ProbeState state) {
    for (ProbeId probe : probes_)
      EXPECT_EQ(engine_->GetProbe(probe)->state, state);
  }

  std::string Maps() {
    std::ifstream file(fmt::format("/proc/{}/maps", puppet_.pid()));
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const std::string library_ = Puppet::Path("libreloaded.so");
  Puppet puppet_{"reloading", {library_}};
  std::vector<ProbeId> probes_;
};

TEST_F(ReloadTest, EveryCallIsSeenFromConstructorToDestructor) {
  Ask("cycle 2 1");  // so that the allocator has what it needs
  const Calls before = Ask("cycle 2 1");
  const std::string maps = Maps();
  TargetId target = Attach(puppet_);
  DefineAll(target);
  auto since = [&](Calls calls) {
    return Calls{calls.first - before.first, calls.second - before.second, calls.wrong};
  };
  const int rounds = Rounds(20);
  for (int i = 0; i < rounds; ++i) {
    ExpectEveryCall(since(Ask("cycle 4 5")));
    ExpectState(ProbeState::kGone);
    Ask("open");
    ExpectState(ProbeState::kArmed);
    EXPECT_TRUE(BecomesOptimized(probes_[2]) && BecomesOptimized(probes_[3])) << "round " << i;
    Ask("call 7");
    ExpectEveryCall(since(Ask("close")));
    ExpectState(ProbeState::kGone);
    if (HasFailure()) break;
  }
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
  EXPECT_EQ(Maps(), maps);
}

// Attached to, and let go of, at every point of such a cycle.
TEST_F(ReloadTest, ComingAndGoingInTheMiddleLeavesNothing) {
  puppet_.Send("spin 5");
  uint64_t hits = 0;
  const int rounds = Rounds(30);
  for (int i = 0; i < rounds; ++i) {
    TargetId target = Attach(puppet_);
    DefineAll(target);
    ASSERT_TRUE(Eventually(
        [&] { return Counters(probes_.front()).hits > 0 && Counters(probes_[3]).hits > 0; }));
    for (ProbeId probe : probes_)
      hits += Counters(probe).hits;
    EXPECT_EQ(Detach(target).warning, "");
    if (HasFailure()) break;
  }
  const Calls calls = Ask("end");
  EXPECT_EQ(calls.wrong, 0u);
  EXPECT_LE(hits, 2 * (calls.first + calls.second));
  Ask("open");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

}  // namespace
}  // namespace probed::engine

// A program whose threads live for a moment is attached to, probed and let go of, while they come
// and go: every call is counted, and nothing is left. PROBED_TEST_SECONDS makes it longer: ten
// minutes are what is demanded.

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/engine/harness.h"
#include "tests/support/eventually.h"

namespace probed::engine {
namespace {

struct Lives {
  uint64_t count = 0, wrong = ~uint64_t{0};
};

Lives Rest(Puppet& puppet) {
  Lives lives;
  std::sscanf(puppet.Ask("rest").c_str(), "%lu %lu", &lives.count, &lives.wrong);
  return lives;
}

std::chrono::seconds Length() {
  const char* seconds = std::getenv("PROBED_TEST_SECONDS");
  return std::chrono::seconds(seconds != nullptr ? std::atoi(seconds) : 1);
}

class ThreadChurnTest : public EngineTest {
 protected:
  ThreadChurnTest() : EngineTest(Optimizing()) {
    events_ =
        engine_->Subscribe({.max_queued_bytes = 1u << 20, .wants_hit = {}, .wants_notice = {}});
  }

  std::vector<ProbeId> DefineAll(TargetId target, const Puppet& puppet) {
    auto line = [&](const char* form) {
      return fmt::format(fmt::runtime(form), fmt::arg("path", puppet.path()));
    };
    std::vector<ProbeId> ids;
    for (const auto& probe : Create(target, {line("p:t/born {path}:born number=%di"),
                                             line("r:t/born_end {path}:born $retval")}))
      ids.push_back(probe.id);
    for (const auto& probe :
         Create(target,
                {line("p:t/dies {path}:dies number=%di"), line("r:t/dies_end {path}:dies $retval")},
                {.optimize = false}))
      ids.push_back(probe.id);
    return ids;
  }

  // Attached to, and let go of, in the middle of it; counted from one rest to the next.
  void LiveThroughOne(Puppet& puppet, std::chrono::milliseconds time) {
    const TargetId target = Attach(puppet);
    const Lives before = Rest(puppet);
    const auto probes = DefineAll(target, puppet);
    ASSERT_EQ(probes.size(), 4u);
    ASSERT_EQ(puppet.Ask("go"), "going");
    EXPECT_TRUE(BecomesOptimized(probes[0]));
    const auto end = std::chrono::steady_clock::now() + time;
    const uint64_t hits = Counters(probes[0]).hits;
    EXPECT_TRUE(Eventually([&] {
      return std::chrono::steady_clock::now() > end && Counters(probes[0]).hits > hits + 100;
    }));
    const Lives after = Rest(puppet);
    EXPECT_EQ(after.wrong, 0u);
    for (ProbeId probe : probes) {
      const ProbeCounters counters = Counters(probe);
      EXPECT_EQ(counters.hits + counters.missed, after.count - before.count) << probe;
    }
    ASSERT_EQ(puppet.Ask("go"), "going");
    EXPECT_EQ(Detach(target).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
    lives_ = after.count;
    ++rounds_;
  }

  // Each maker has four at once.
  void LiveThroughMany(const char* makers) {
    Puppet puppet("mayflies", {makers});
    ASSERT_EQ(puppet.Ask("go"), "going");
    const auto end = std::chrono::steady_clock::now() + Length();
    while (!HasFailure() && (rounds_ < 2 || std::chrono::steady_clock::now() < end))
      LiveThroughOne(puppet, std::chrono::milliseconds(100));
    EXPECT_EQ(Rest(puppet).wrong, 0u);
    fmt::print("{} rounds, {} threads\n", rounds_, lives_);
    puppet.CloseInput();
    EXPECT_EQ(puppet.Wait(), 0);
  }

 private:
  uint64_t lives_ = 0;
  int rounds_ = 0;
};

TEST_F(ThreadChurnTest, EveryThreadIsCountedAndNothingIsLeft) {
  LiveThroughMany("8");
}

// A thousand at once where there is time.
TEST_F(ThreadChurnTest, OfHundredsAtOnce) {
  LiveThroughMany(Length() > std::chrono::minutes(1) ? "250" : "50");
}

}  // namespace
}  // namespace probed::engine

// What a filter lets through is the same whether a trap or a detour evaluates it, and no hit is
// lost or counted twice when it changes.

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/engine/harness.h"
#include "tests/lang/filter_generator.h"

namespace probed::engine {
namespace {

using lang::Dialect;
using lang::testing::FilterGenerator;

class SelectionTest : public EngineTest {
 protected:
  SelectionTest() : EngineTest(Optimizing()) {}

  static bool Eventually(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // What is planned for the probe has come to pass: it is a jump, or it says what forbids one.
  bool IsSettled(ProbeId id) {
    return Eventually([&] {
      const ProbeInfo info = *engine_->GetProbe(id);
      return info.mechanism == Mechanism::kOptimized ||
             info.reason.find("needs the daemon") != std::string::npos;
    });
  }
  bool IsJump(ProbeId id) { return engine_->GetProbe(id)->mechanism == Mechanism::kOptimized; }
};

class Twins : public SelectionTest, public ::testing::WithParamInterface<Dialect> {
 protected:
  static constexpr int kCalls = 40;

  // The same program twice: a probe in the first may become a jump.
  void SetUp() override {
    for (size_t i = 0; i < 2; ++i)
      targets_[i] = Attach(puppets_[i]);
  }

  void DefineBoth(const ring::Sampling& sampling = {}) {
    for (size_t i = 0; i < 2; ++i) {
      auto created = Create(targets_[i], {Line(i)},
                            {.dialect = GetParam(), .optimize = i == 0, .sampling = sampling});
      ASSERT_EQ(created.size(), 1u);
      probes_[i] = created.front().id;
    }
    ASSERT_TRUE(BecomesOptimized(probes_[0]));
  }

  std::string Line(size_t twin) {
    auto place = engine_->Explain(targets_[twin], puppets_[twin].path() + ":work");
    const std::string real = GetParam() == Dialect::kKernel ? "real=%dx:u8" : "real=+0(%dx):f64";
    return fmt::format("p:t/twin {}:{:#x} n=%di:s32 text=+0(%si):string letter=+1(%si):u8 {}",
                       puppets_[twin].path(), place->offset, real);
  }

  // Both have the same calls; what is recorded of each.
  std::array<std::vector<event::HitRecord>, 2> RunBoth(uint64_t seed) {
    for (Puppet& puppet : puppets_)
      puppet.Ask(fmt::format("{} {}", seed, kCalls));
    std::array<std::vector<event::HitRecord>, 2> hits;
    for (auto& hit : DrainHits())
      hits[hit.probe == probes_[0] ? 0 : 1].push_back(std::move(hit));
    return hits;
  }

  void Compare(uint64_t seed, const std::string& filter) {
    const auto hits = RunBoth(seed);
    ASSERT_EQ(hits[0].size(), hits[1].size()) << filter;
    for (size_t i = 0; i < hits[0].size(); ++i)
      ASSERT_EQ(hits[0][i].payload, hits[1][i].payload) << filter;
    const ProbeCounters counters = Counters(probes_[0]);
    const ProbeCounters expected = Counters(probes_[1]);
    ASSERT_EQ(counters.hits, expected.hits) << filter;
    ASSERT_EQ(counters.recorded, expected.recorded) << filter;
    ASSERT_EQ(counters.filtered, expected.filtered) << filter;
    ASSERT_EQ(counters.sampled_out, expected.sampled_out) << filter;
    ASSERT_EQ(counters.lost, expected.lost) << filter;
  }

  std::array<Puppet, 2> puppets_{Puppet("values"), Puppet("values")};
  std::array<TargetId, 2> targets_;
  std::array<ProbeId, 2> probes_{};
};

TEST_P(Twins, RecordTheSameWithRandomFilters) {
  DefineBoth();
  const std::vector<std::string> texts{"", "a", "abc", "/etc/passwd", "xaby.conf", "[brackets]"};
  std::vector<lang::testing::FilterSubject> subjects{
      {"n", {"-1", "0", "3", "7", "0x7fffffff"}},
      {"letter", {"0", "98", "255", "47"}},
      {"text", texts, true},
      {"common_flags", {"0"}},
  };
  if (GetParam() == Dialect::kExtended) subjects.push_back({"real", {"0", "1.5", "-1e-300"}});
  FilterGenerator generator(static_cast<uint64_t>(GetParam()) + 7, subjects);
  int jumps = 0;
  for (uint64_t round = 0; round < 60 && !HasFatalFailure(); ++round) {
    const std::string filter = generator.NextGood();
    const auto refused = engine_->SetFilter(probes_[0], filter);
    EXPECT_EQ(refused.has_value(), engine_->SetFilter(probes_[1], filter).has_value());
    if (refused) continue;
    ASSERT_TRUE(IsSettled(probes_[0])) << filter;
    if (IsJump(probes_[0])) ++jumps;
    Compare(round, filter);
  }
  EXPECT_GT(jumps, 30);
}

// Nobody reads: what passes is counted as recorded, what does not as filtered.
TEST_P(Twins, CountTheSameWithoutASubscriber) {
  events_.reset();
  DefineBoth();
  for (const ProbeId probe : probes_)
    EXPECT_FALSE(engine_->SetFilter(probe, "n > 3 && text ~ \"*b*\""));
  ASSERT_TRUE(BecomesOptimized(probes_[0]));
  for (Puppet& puppet : puppets_)
    puppet.Ask("1 500");
  const ProbeCounters counters = Counters(probes_[0]);
  EXPECT_EQ(counters.hits, 500u);
  EXPECT_GT(counters.filtered, 100u);
  EXPECT_GT(counters.recorded, 10u);
  EXPECT_EQ(counters.filtered, Counters(probes_[1]).filtered);
  EXPECT_EQ(counters.recorded, Counters(probes_[1]).recorded);
}

TEST_P(Twins, RecordTheSameOneInSoMany) {
  DefineBoth({.every = 3});
  Compare(1, "");
  for (const ProbeId probe : probes_)
    EXPECT_EQ(Counters(probe).recorded, 14u);  // of 40
  EXPECT_EQ(Counters(probes_[0]).sampled_out, 26u);
}

// The mechanisms have clocks of their own: seconds do not begin at the same moment.
TEST_P(Twins, RecordSoManyASecond) {
  constexpr uint32_t kLimit = 5;
  DefineBoth({.per_second = kLimit});
  const auto hits = RunBoth(1);
  for (size_t i = 0; i < 2; ++i) {
    const ProbeCounters counters = Counters(probes_[i]);
    EXPECT_EQ(counters.hits, uint64_t{kCalls});
    EXPECT_EQ(counters.recorded + counters.sampled_out, uint64_t{kCalls});
    EXPECT_EQ(counters.recorded, hits[i].size());
    EXPECT_GE(hits[i].size(), kLimit);
    for (size_t first = 0; first + 2 * kLimit < hits[i].size(); ++first) {
      EXPECT_GE(hits[i][first + 2 * kLimit].monotonic_ns - hits[i][first].monotonic_ns,
                990'000'000u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dialects, Twins, ::testing::Values(Dialect::kExtended, Dialect::kKernel));

class Compiled : public SelectionTest {
 protected:
  Puppet puppet_{"counter"};
  TargetId target_ = Attach(puppet_);
};

TEST_F(Compiled, WhatOnlyTheDaemonKnowsStaysABreakpointAndSaysSo) {
  const ProbeId id =
      Define(target_, fmt::format("p:t/in {}:work n=%di:s32 text=+0(%si):string", puppet_.path()));
  const std::pair<const char*, const char*> refused[] = {
      {"COMM == \"counter\"", "a filter on COMM needs the daemon"},
      {"common_pid > 0", "a filter on the thread's number needs the daemon"}};
  for (const auto& [filter, words] : refused) {
    const std::string reason = words;
    EXPECT_FALSE(engine_->SetFilter(id, filter));
    EXPECT_TRUE(Eventually([&] { return engine_->GetProbe(id)->reason == reason; })) << filter;
    EXPECT_FALSE(IsJump(id)) << filter;
  }
  for (const char* filter : {"n == 5", "CPU >= 0", "common_type != 0", "text ~ \"h[aeiou]*ld\""}) {
    EXPECT_FALSE(engine_->SetFilter(id, filter));
    EXPECT_TRUE(BecomesOptimized(id)) << filter;
    EXPECT_EQ(engine_->GetProbe(id)->filter, filter);
  }
  EXPECT_FALSE(engine_->SetFilter(id, "0"));
  EXPECT_TRUE(BecomesOptimized(id));
  puppet_.Ask("7");
  EXPECT_EQ(DrainHits().size(), 7u);
  EXPECT_EQ(Detach(target_).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet_.pid()), 0u);
}

TEST_F(SelectionTest, AFilterThatChangesUnderRunningThreadsLosesAndDoublesNothing) {
  Puppet puppet("threads");
  const TargetId target = Attach(puppet);
  auto created = Create(target, {fmt::format("p:t/in {}:work n=%di:u64", puppet.path())},
                        {.filter = "n == 1024"});
  const ProbeId id = created.front().id;
  ASSERT_TRUE(BecomesOptimized(id));
  ASSERT_EQ(puppet.Ask("8"), "running");
  for (int round = 0; round < 10; ++round) {
    EXPECT_FALSE(engine_->SetFilter(id, round % 2 == 0 ? "n == 7" : "n == 9 || n == 11"));
    ASSERT_TRUE(BecomesOptimized(id));
    const uint64_t before = Counters(id).hits;
    ASSERT_TRUE(Eventually([&] { return Counters(id).hits > before + 10'000; }));
  }
  EXPECT_EQ(puppet.Ask("end"), "0 wrong");
  const std::string total = puppet.Ask("total");
  const ProbeCounters counters = Counters(id);
  EXPECT_EQ(std::to_string(counters.hits), total);
  EXPECT_EQ(counters.recorded + counters.filtered, counters.hits);
  EXPECT_GT(counters.recorded, 0u);
  EXPECT_EQ(DrainHits().size() + counters.lost, counters.recorded);
}

}  // namespace
}  // namespace probed::engine

// The engine end to end: a real process, real traps, compared with what the process counts itself.

#include <fmt/format.h>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

// The dynamic linker's r_brk is watched as long as we are attached.
constexpr size_t kOwnBreakpoints = 1;

TEST_F(EngineTest, EntryProbeCountsAndValuesAgreeWithTheProgram) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/work {}:work number=%di:s64", puppet.path()));
  EXPECT_EQ(puppet.Ask("1000"), "1000 1103000");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 1000u);
  for (size_t i = 0; i < hits.size(); ++i)
    EXPECT_EQ(First(hits[i]), i);
  EXPECT_EQ(Counters(probe).hits, 1000u);
  EXPECT_EQ(Counters(probe).recorded, 1000u);
}

TEST_F(EngineTest, DetachLeavesTheTextAsInTheFile) {
  Puppet puppet("counter");
  ASSERT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  TargetId target = Attach(puppet);
  Define(target, fmt::format("p:t/work {}:work", puppet.path()));
  EXPECT_GE(ChangedTextBytes(puppet.pid()), kOwnBreakpoints + 1) << "a jump has more bytes";
  auto report = Detach(target);
  EXPECT_EQ(report.sites_restored, 1u) << "as ListSites counts them";
  EXPECT_EQ(report.warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("10"), "10 1130");
}

TEST_F(EngineTest, ProbesOfOneSiteRunNewestFirst) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId older = Define(target, fmt::format("p:t/older {}:work", puppet.path()));
  ProbeId newer = Define(target, fmt::format("p:t/newer {}:work", puppet.path()));
  puppet.Ask("2");
  auto hits = DrainHits();
  ASSERT_EQ(hits.size(), 4u);
  EXPECT_EQ(hits[0].probe, newer);
  EXPECT_EQ(hits[1].probe, older);
  EXPECT_EQ(hits[0].sequence + 1, hits[1].sequence);
  auto sites = engine_->ListSites(target);
  ASSERT_EQ(sites.size(), 1u);
  EXPECT_EQ(sites[0].probes, (std::vector<ProbeId>{newer, older}));
  EXPECT_EQ(sites[0].hits, 2u);
  EXPECT_EQ(sites[0].symbol, "work+0x0");
}

TEST_F(EngineTest, DisabledAndDeletedProbesLeaveNoBreakpoint) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/work {}:work", puppet.path()));
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, false).ok());
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), kOwnBreakpoints);
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kDisabled);
  puppet.Ask("5");
  ASSERT_TRUE(engine_->SetProbesEnabled({probe}, true).ok());
  puppet.Ask("7");
  EXPECT_EQ(Counters(probe).hits, 7u);
  ASSERT_TRUE(engine_->DeleteProbes({probe}).ok());
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), kOwnBreakpoints);
  EXPECT_EQ(engine_->GetProbe(probe).error().reason, "PROBE_NOT_FOUND");
  // The name is free again.
  EXPECT_NE(Define(target, fmt::format("p:t/work {}:work", puppet.path())), probe);
}

TEST_F(EngineTest, EveryInstructionOfAFunctionCanBeProbed) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  auto start = engine_->Explain(target, puppet.path() + ":work");
  ASSERT_TRUE(start.ok()) << start.error().ToString();
  std::vector<std::string> lines;
  for (uint64_t at = 0; at < start->function_size; ++at) {
    auto place = engine_->Explain(target, fmt::format("{}:work+{}", puppet.path(), at));
    if (place.ok() && place->on_boundary) {
      lines.push_back(fmt::format("p:t/at{} {}:{:#x}", at, puppet.path(), start->offset + at));
    }
  }
  ASSERT_GT(lines.size(), 3u);
  auto probes = Create(target, lines);
  EXPECT_EQ(puppet.Ask("500"), "500 301500");
  for (const auto& probe : probes)
    EXPECT_EQ(Counters(probe.id).hits, 500u) << probe.definition;
}

TEST_F(EngineTest, LaunchedProgramIsProbedFromItsFirstInstruction) {
  LaunchOptions options;
  options.argv = {Puppet::Path("counter")};
  auto target = engine_->Launch(options);
  ASSERT_TRUE(target.ok()) << target.error().ToString();
  ProbeId probe = Define(target->id, fmt::format("p:t/main {}:main", Puppet::Path("counter")));
  ASSERT_TRUE(engine_->Resume(target->id).ok());
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (Counters(probe).hits == 0 && std::chrono::steady_clock::now() < deadline) {
    (void)events_->Next(100, std::chrono::milliseconds(100));
  }
  EXPECT_EQ(Counters(probe).hits, 1u);
}

}  // namespace
}  // namespace probed::engine

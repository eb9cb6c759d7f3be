// Libraries that come and go.

#include <fmt/format.h>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

TEST_F(EngineTest, APendingProbeIsArmedBeforeTheLibraryRuns) {
  std::string library = Puppet::Path("libplugin.so");
  Puppet puppet("loader", {library});
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/x {}:plugin_work", library));
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kPending);
  puppet.Ask("open");  // its constructor makes the first call
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kArmed);
  EXPECT_EQ(puppet.Ask("call 10"), "11");
  EXPECT_EQ(Counters(probe).hits, 11u);
  puppet.Ask("close");
  EXPECT_EQ(engine_->GetProbe(probe)->state, ProbeState::kGone);
  puppet.Ask("open");
  EXPECT_EQ(puppet.Ask("call 2"), "3");
  EXPECT_EQ(Counters(probe).hits, 14u);
}

TEST_F(EngineTest, AModuleCanBeNamedByItsBaseName) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, "p:t/x counter:work");
  EXPECT_EQ(puppet.Ask("3"), "3 318");
  EXPECT_EQ(Counters(probe).hits, 3u);
  auto modules = engine_->ListModules(target);
  ASSERT_TRUE(modules.ok());
  EXPECT_TRUE(std::any_of(modules->begin(), modules->end(), [](const auto& module) {
    return module.path.find("libc.so.6") != std::string::npos && module.build_id.size() == 40;
  }));
}

}  // namespace
}  // namespace probed::engine

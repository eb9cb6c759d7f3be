// fork and exec: children are followed or left clean.

#include <fmt/format.h>

#include "tests/engine/harness.h"

namespace probed::engine {
namespace {

TEST_F(EngineTest, AFollowedChildIsProbedFromItsFirstInstruction) {
  Puppet puppet("control");
  TargetId target = Attach(puppet, {.follow_children = true});
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask("fork 0"), "42");
  EXPECT_EQ(Counters(probe).hits, 6u);  // only the child calls recurse(5)
  int forked = 0;
  for (const auto& item : Drain()) {
    if (const auto* hit = std::get_if<event::HitRecord>(&item)) {
      EXPECT_NE(hit->target.pid, puppet.pid());
    }
    const auto* notice = std::get_if<event::TargetNotice>(&item);
    if (notice && notice->change == event::TargetChange::kForked) {
      EXPECT_EQ(notice->root, target);
      ++forked;
    }
  }
  EXPECT_EQ(forked, 1);
}

TEST_F(EngineTest, AReleasedChildRunsClean) {
  Puppet puppet("control");
  TargetId target = Attach(puppet, {.follow_children = false});
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  ProbeId exit = Define(target, fmt::format("r:t/y {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask("fork 0"), "42");
  EXPECT_EQ(Counters(probe).hits, 0u);
  EXPECT_EQ(puppet.Ask("recurse 1"), "1");
  EXPECT_EQ(Counters(probe).hits, 2u);
  EXPECT_EQ(Counters(exit).recorded, 2u);
}

TEST_F(EngineTest, BothProcessesReturnThroughAFrameThatForked) {
  for (bool follow : {false, true}) {
    Puppet puppet("control");
    TargetId target = Attach(puppet, {.follow_children = follow});
    ProbeId probe = Define(target, fmt::format("r:t/x {}:fork_inside", puppet.path()));
    EXPECT_EQ(puppet.Ask("forkin 5"), "12");
    EXPECT_EQ(Counters(probe).hits, 1u);
    EXPECT_EQ(Counters(probe).recorded, follow ? 2u : 1u);
  }
}

TEST_F(EngineTest, ProbesAreArmedAgainAfterAnExec) {
  Puppet puppet("control");
  TargetId target = Attach(puppet);
  ProbeId probe = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
  EXPECT_EQ(puppet.Ask("recurse 1"), "1");
  EXPECT_EQ(puppet.Ask("exec"), "ready");
  EXPECT_EQ(puppet.Ask("recurse 2"), "2");
  EXPECT_EQ(Counters(probe).hits, 5u);
  EXPECT_EQ(Detach(target).warning, "");
  EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  EXPECT_EQ(puppet.Ask("recurse 3"), "3");
}

TEST_F(EngineTest, SpawnedProgramsRunWhetherFollowedOrNot) {
  for (bool follow : {false, true}) {
    Puppet puppet("control");
    TargetId target = Attach(puppet, {.follow_children = follow});
    ProbeId parent = Define(target, fmt::format("p:t/x {}:recurse", puppet.path()));
    ProbeId libc = Define(target, "p:t/y libc.so.6:waitpid");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(puppet.Ask("system"), "3");
    EXPECT_EQ(puppet.Ask("recurse 1"), "1");
    EXPECT_EQ(Counters(parent).hits, 2u);
    EXPECT_EQ(engine_->GetProbe(libc)->state, ProbeState::kArmed);
    EXPECT_EQ(Detach(target).warning, "");
    EXPECT_EQ(ChangedTextBytes(puppet.pid()), 0u);
  }
}

TEST_F(EngineTest, AnExitIsAnnounced) {
  Puppet puppet("counter");
  TargetId target = Attach(puppet);
  puppet.CloseInput();
  bool exited = false;
  for (int i = 0; i < 100 && !exited; ++i) {
    for (const auto& item : events_->Next(100, std::chrono::milliseconds(100))) {
      const auto* notice = std::get_if<event::TargetNotice>(&item);
      exited |= notice && notice->change == event::TargetChange::kExited &&
                notice->target == target && notice->exit_status == 0;
    }
  }
  EXPECT_TRUE(exited);
  EXPECT_EQ(engine_->ListTargets().front().state, TargetState::kExited);
  EXPECT_EQ(engine_->CreateProbes(target, {"p:a/b /bin/true:0x10"}, {}).error().reason,
            "TARGET_NOT_FOUND");
}

}  // namespace
}  // namespace probed::engine

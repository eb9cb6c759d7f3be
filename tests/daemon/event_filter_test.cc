#include "daemon/services/event_filter.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

constexpr event::TargetId kMine{1, 1};
constexpr event::TargetId kOther{2, 2};
constexpr event::TargetId kChild{3, 3};

event::TargetNotice Notice(event::TargetId target, event::TargetId root,
                           event::TargetChange change) {
  event::TargetNotice notice;
  notice.target = target;
  notice.root = root;
  notice.change = change;
  return notice;
}

bool Everything(event::TargetId) {
  return true;
}

TEST(EventFilter, NothingNamedMeansAll) {
  EventFilter filter({}, Everything);
  EXPECT_TRUE(filter.WantsHit(1, kMine));
}

TEST(EventFilter, WhatGrowsBeginsWithWhatIsNamed) {
  EventFilter filter({.targets = {}, .probes = {}, .grows = true}, Everything);
  EXPECT_FALSE(filter.WantsHit(1, kMine));
  filter.Add(kMine);
  EXPECT_FALSE(filter.WantsHit(1, kMine));
  filter.Add(std::vector<event::ProbeId>{1});
  EXPECT_TRUE(filter.WantsHit(1, kMine));
  EXPECT_FALSE(filter.WantsHit(2, kMine));
}

TEST(EventFilter, NamedTargetsAndTheirChildren) {
  EventFilter filter({{kMine}, {}}, Everything);
  EXPECT_TRUE(filter.WantsHit(1, kMine));
  EXPECT_FALSE(filter.WantsHit(1, kOther));
  EXPECT_FALSE(filter.WantsHit(1, kChild));
  EXPECT_TRUE(filter.WantsNotice(Notice(kChild, kMine, event::TargetChange::kForked)));
  EXPECT_TRUE(filter.WantsHit(1, kChild));
}

TEST(EventFilter, ChildrenThatWereThereBefore) {
  EventFilter filter({{kMine}, {}}, Everything);
  engine::TargetInfo child;
  child.id = kChild;
  child.root = kMine;
  filter.Learn(child);
  EXPECT_TRUE(filter.WantsHit(5, kChild));
  EXPECT_EQ(filter.TargetOf(5, kChild), kMine);
}

TEST(EventFilter, ProbeKeepsItsTargetAfterAChildsExit) {
  EventFilter filter({}, Everything);
  filter.WantsNotice(Notice(kChild, kMine, event::TargetChange::kForked));
  filter.WantsHit(5, kChild);
  EXPECT_TRUE(filter.WantsNotice(Notice(kChild, kMine, event::TargetChange::kExited)));
  EXPECT_EQ(filter.TargetOf(5, kChild), kMine);
}

TEST(EventFilter, NamedProbes) {
  EventFilter filter({{}, {7}}, Everything);
  EXPECT_TRUE(filter.WantsHit(7, kMine));
  EXPECT_FALSE(filter.WantsHit(8, kMine));
}

TEST(EventFilter, PermissionIsAskedOnceAndAfterExec) {
  int asked = 0;
  bool allowed = true;
  EventFilter filter({}, [&](event::TargetId) {
    ++asked;
    return allowed;
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(filter.WantsHit(1, kMine));
  EXPECT_EQ(asked, 1);
  allowed = false;  // it became another user's by a set-user-id exec
  EXPECT_FALSE(filter.WantsNotice(Notice(kMine, kMine, event::TargetChange::kExecuted)));
  EXPECT_FALSE(filter.WantsHit(1, kMine));
  EXPECT_EQ(asked, 2);
}

// The kernel's hits happen in processes that nobody has attached to.
TEST(EventFilter, HitsOfTheKernelBelongToIt) {
  const event::TargetId somewhere{77, 0};
  EventFilter all({}, [](event::TargetId target) { return target == engine::kKernelTarget; });
  EXPECT_TRUE(all.WantsHit(5, somewhere));
  EXPECT_EQ(all.TargetOf(5, somewhere), engine::kKernelTarget);
  EventFilter wanted({{engine::kKernelTarget}, {5}}, [](event::TargetId) { return true; });
  EXPECT_TRUE(wanted.WantsHit(5, somewhere));
  EXPECT_FALSE(wanted.WantsHit(6, somewhere));
  EventFilter other({{kMine}, {}}, [](event::TargetId) { return true; });
  EXPECT_FALSE(other.WantsHit(5, somewhere));
  EventFilter forbidden({}, [](event::TargetId) { return false; });
  EXPECT_FALSE(forbidden.WantsHit(5, somewhere));
}

}  // namespace
}  // namespace probed::daemon

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

}  // namespace
}  // namespace probed::daemon

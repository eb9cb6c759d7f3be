#include "daemon/services/event_filter.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

constexpr event::TargetId kMine{1, 1};
constexpr event::TargetId kOther{2, 2};
constexpr event::TargetId kChild{3, 3};

event::Item Hit(event::TargetId target, event::ProbeId probe) {
  event::HitRecord hit;
  hit.target = target;
  hit.probe = probe;
  return hit;
}

event::Item Notice(event::TargetId target, event::TargetId root, event::TargetChange change) {
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
  EXPECT_TRUE(filter.Wants(Hit(kMine, 1)));
  EXPECT_TRUE(filter.Wants(event::LossNotice{}));
}

TEST(EventFilter, NamedTargetsAndTheirChildren) {
  EventFilter filter({{kMine}, {}}, Everything);
  EXPECT_TRUE(filter.Wants(Hit(kMine, 1)));
  EXPECT_FALSE(filter.Wants(Hit(kOther, 1)));
  EXPECT_FALSE(filter.Wants(Hit(kChild, 1)));
  EXPECT_TRUE(filter.Wants(Notice(kChild, kMine, event::TargetChange::kForked)));
  EXPECT_TRUE(filter.Wants(Hit(kChild, 1)));
}

TEST(EventFilter, ChildrenThatWereThereBefore) {
  EventFilter filter({{kMine}, {}}, Everything);
  engine::TargetInfo child;
  child.id = kChild;
  child.root = kMine;
  filter.Learn(child);
  EXPECT_TRUE(filter.Wants(Hit(kChild, 5)));
  event::HitRecord hit;
  hit.target = kChild;
  hit.probe = 5;
  EXPECT_EQ(filter.TargetOf(hit), kMine);
}

TEST(EventFilter, ProbeKeepsItsTargetAfterAChildsExit) {
  EventFilter filter({}, Everything);
  filter.Wants(Notice(kChild, kMine, event::TargetChange::kForked));
  filter.Wants(Hit(kChild, 5));
  EXPECT_TRUE(filter.Wants(Notice(kChild, kMine, event::TargetChange::kExited)));
  event::HitRecord hit;
  hit.target = kChild;
  hit.probe = 5;
  EXPECT_EQ(filter.TargetOf(hit), kMine);
}

TEST(EventFilter, NamedProbes) {
  EventFilter filter({{}, {7}}, Everything);
  EXPECT_TRUE(filter.Wants(Hit(kMine, 7)));
  EXPECT_FALSE(filter.Wants(Hit(kMine, 8)));
}

TEST(EventFilter, PermissionIsAskedOnceAndAfterExec) {
  int asked = 0;
  bool allowed = true;
  EventFilter filter({}, [&](event::TargetId) {
    ++asked;
    return allowed;
  });
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(filter.Wants(Hit(kMine, 1)));
  EXPECT_EQ(asked, 1);
  allowed = false;  // it became another user's by a set-user-id exec
  EXPECT_FALSE(filter.Wants(Notice(kMine, kMine, event::TargetChange::kExecuted)));
  EXPECT_FALSE(filter.Wants(Hit(kMine, 1)));
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace probed::daemon

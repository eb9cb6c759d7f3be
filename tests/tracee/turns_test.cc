#include "engine/tracee/turns.h"

#include <gtest/gtest.h>

namespace probed::tracee {
namespace {

void CountUntilRound(Turns& turns) {
  for (int i = 0; i < 1000 && !turns.in_round(); ++i)
    turns.CountStop();
}

TEST(TurnsTest, ARoundFollowsARoundWhileManyWait) {
  Turns turns;
  EXPECT_FALSE(turns.in_round());
  CountUntilRound(turns);
  ASSERT_TRUE(turns.in_round());
  for (pid_t tid : {3, 1, 2}) {
    turns.CountStop();
    turns.Wait(tid);
  }
  EXPECT_EQ(turns.End(), (std::vector<pid_t>{3, 1, 2}));
  EXPECT_TRUE(turns.in_round());
  EXPECT_EQ(turns.End(), std::vector<pid_t>{});
  EXPECT_FALSE(turns.in_round());
}

TEST(TurnsTest, TwoThatTheTracerKeepsUpWithNeedNone) {
  Turns turns;
  CountUntilRound(turns);
  turns.Wait(1);
  turns.Wait(2);
  EXPECT_EQ(turns.End().size(), 2u);
  EXPECT_FALSE(turns.in_round());
  CountUntilRound(turns);
  EXPECT_TRUE(turns.in_round());
}

// Signals, say: that thread must not keep those that wait.
TEST(TurnsTest, StopsOfOneThatDoesNotWaitMakeARoundLong) {
  Turns turns;
  CountUntilRound(turns);
  turns.Wait(1);
  int stops = 0;
  for (; stops < 1000 && !turns.is_long(); ++stops)
    turns.CountStop();
  EXPECT_LT(stops, 100);
}

TEST(TurnsTest, ARoundOfManyIsNotLong) {
  Turns turns;
  CountUntilRound(turns);
  for (pid_t tid = 1; tid <= 1000; ++tid) {
    turns.CountStop();
    turns.Wait(tid);
    ASSERT_FALSE(turns.is_long()) << tid;
  }
}

}  // namespace
}  // namespace probed::tracee

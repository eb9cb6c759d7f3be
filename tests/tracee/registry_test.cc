#include "engine/tracee/registry.h"

#include <gtest/gtest.h>

namespace probed::tracee {
namespace {

// Threads proper take their turns in EngineTest.OfManyBusyThreadsNoneStandsStill.
TEST(Registry, EachTaskHasItsTurn) {
  Registry registry;
  EXPECT_EQ(registry.TaskAfter(0), 0);
  registry.AddLeaving(9);
  EXPECT_EQ(registry.TaskAfter(0), 0) << "nobody to take turns with";
  registry.AddLeaving(5);
  EXPECT_EQ(registry.TaskAfter(0), 5);
  EXPECT_EQ(registry.TaskAfter(5), 9);
  EXPECT_EQ(registry.TaskAfter(7), 9);
  EXPECT_EQ(registry.TaskAfter(9), 5);
  EXPECT_TRUE(registry.TakeLeaving(5));
  EXPECT_EQ(registry.TaskAfter(9), 0);
}

}  // namespace
}  // namespace probed::tracee

#include "engine/kernel/profile.h"

#include <gtest/gtest.h>

namespace probed::kernel {
namespace {

TEST(Profile, TakesTheGroupFromTheListOfDefinitions) {
  Profile profile;
  ASSERT_TRUE(ParseProfile("  a            3               1\n  a            5               0\n",
                           {{"p", "one", "a", "vfs_read"}, {"r", "two", "a", "vfs_read"}},
                           profile));
  EXPECT_EQ((profile[{"one", "a"}].hits), 3u);
  EXPECT_EQ((profile[{"one", "a"}].missed), 1u);
  EXPECT_EQ((profile[{"two", "a"}].hits), 5u);
}

TEST(Profile, OfUprobesNamesPathsFirst) {
  Profile profile;
  ASSERT_TRUE(ParseProfile("  /usr/my program 7 a            42\n  /usr/x a            1\n",
                           {{"p", "g", "a", "x"}, {"p", "g", "a", "y"}}, profile));
  EXPECT_EQ((profile[{"g", "a"}].hits), 43u);
}

TEST(Profile, OfAnotherListIsNotTaken) {
  Profile profile;
  EXPECT_FALSE(ParseProfile("  a 3 1\n", {}, profile));
  EXPECT_FALSE(ParseProfile("  a 3 1\n", {{"p", "g", "b", ""}}, profile));
  EXPECT_FALSE(ParseProfile("", {{"p", "g", "b", ""}}, profile));
  EXPECT_FALSE(ParseProfile("  b\n", {{"p", "g", "b", ""}}, profile));
  EXPECT_TRUE(profile.empty());
}

}  // namespace
}  // namespace probed::kernel

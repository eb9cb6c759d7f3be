#include "daemon/convert/names.h"

#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

TEST(Names, GoThereAndBack) {
  const ProbeRef probe{{4711, 18446744073709551615u}, 42};
  EXPECT_EQ(TargetName(probe.target), "targets/4711-18446744073709551615");
  EXPECT_EQ(ProbeName(probe), "targets/4711-18446744073709551615/probes/42");
  EXPECT_EQ(ParseTargetName(TargetName(probe.target)).value(), probe.target);
  EXPECT_EQ(ParseProbeName(ProbeName(probe)).value(), probe);
}

TEST(Names, OneThingHasOneName) {
  for (const char* name :
       {"", "targets", "targets/", "targets/1", "targets/1-", "targets/-1-2", "targets/01-2",
        "targets/1-02", "targets/1-2 ", "targets/1-2/", "targets/1-2/probes/3", "target/1-2",
        "targets/99999999999-2", "targets/1-99999999999999999999", "targets/+1-2", "targets/-"})
    EXPECT_FALSE(ParseTargetName(name).ok()) << name;
  for (const char* name : {"targets/1-2", "targets/1-2/probes/", "targets/1-2/probes/03",
                           "targets/1-2/probes/3/probes/4", "/probes/3", "targets/-/probes/3"})
    EXPECT_FALSE(ParseProbeName(name).ok()) << name;
}

TEST(Names, TheKernelHasOne) {
  EXPECT_EQ(TargetName(engine::kKernelTarget), "targets/kernel");
  EXPECT_EQ(ParseTargetName("targets/kernel").value(), engine::kKernelTarget);
  EXPECT_EQ(ParseProbeName("targets/kernel/probes/7").value(),
            (ProbeRef{engine::kKernelTarget, 7}));
  EXPECT_FALSE(ParseTargetName("targets/0-0").ok());
  EXPECT_FALSE(ParseTargetName("targets/kernel/").ok());
}

TEST(Names, ErrorsSayWhatWasExpected) {
  const auto error = ParseTargetName("targets/x").error();
  EXPECT_EQ(error.code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(error.reason, "INVALID_NAME");
  EXPECT_NE(error.message.find("targets/PID-START"), std::string::npos);
}

TEST(Names, DashIsEveryTarget) {
  EXPECT_EQ(ParseParent("targets/-").value(), std::nullopt);
  EXPECT_EQ(ParseParent("targets/1-2").value(), (event::TargetId{1, 2}));
  EXPECT_FALSE(ParseParent("").ok());
}

}  // namespace
}  // namespace probed::daemon

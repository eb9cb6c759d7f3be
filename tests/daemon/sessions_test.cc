#include "daemon/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace probed::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr event::TargetId kTarget{100, 1};
constexpr event::TargetId kOther{200, 2};
const SessionKey kNoSession{1000, ""};
const SessionKey kA{1000, "a"};
const SessionKey kB{1000, "b"};

class SessionsTest : public testing::Test {
 protected:
  Result<engine::TargetInfo> Hold(event::TargetId target, const SessionKey& session,
                                  Status verdict = {}) {
    return sessions_.Hold(
        session,
        [&]() -> Result<engine::TargetInfo> {
          engine::TargetInfo info;
          info.id = target;
          return info;
        },
        [&](const engine::TargetInfo&) { return verdict; });
  }

  std::vector<event::TargetId> detached_;
  std::vector<std::vector<event::ProbeId>> deleted_;
  Status delete_result_;
  Sessions sessions_{{[this](event::TargetId target) -> Result<engine::DetachReport> {
                        detached_.push_back(target);
                        return engine::DetachReport{7, 8, 9, ""};
                      },
                      [this](const std::vector<event::ProbeId>& probes) {
                        deleted_.push_back(probes);
                        return delete_result_;
                      }}};
};

TEST_F(SessionsTest, EndLetsGoOfWhatNobodyElseHolds) {
  ASSERT_TRUE(Hold(kTarget, kA).ok());
  ASSERT_TRUE(Hold(kOther, kA).ok());
  ASSERT_TRUE(Hold(kOther, kB).ok());
  EXPECT_THAT(sessions_.End(kA), ElementsAre(kTarget));
  EXPECT_THAT(detached_, ElementsAre(kTarget));
  EXPECT_THAT(sessions_.End(kB), ElementsAre(kOther));
}

TEST_F(SessionsTest, TargetWithoutSessionStays) {
  ASSERT_TRUE(Hold(kTarget, kNoSession).ok());
  ASSERT_TRUE(Hold(kTarget, kA).ok());
  EXPECT_THAT(sessions_.End(kA), IsEmpty());
  EXPECT_THAT(detached_, IsEmpty());
  EXPECT_TRUE(sessions_.Leave(kTarget, kNoSession)->detached);
}

TEST_F(SessionsTest, LeavingKeepsItForTheOthers) {
  ASSERT_TRUE(Hold(kTarget, kA).ok());
  ASSERT_TRUE(Hold(kTarget, kB).ok());
  EXPECT_FALSE(sessions_.Leave(kTarget, kA)->detached);
  const auto left = sessions_.Leave(kTarget, kB);
  EXPECT_TRUE(left->detached);
  EXPECT_EQ(left->report.sites_restored, 7u);
}

TEST_F(SessionsTest, LeavingForEverybody) {
  ASSERT_TRUE(Hold(kTarget, kA).ok());
  ASSERT_TRUE(Hold(kTarget, kB).ok());
  EXPECT_TRUE(sessions_.Leave(kTarget, kNoSession)->detached);
  EXPECT_THAT(sessions_.End(kA), IsEmpty());
  EXPECT_THAT(detached_, ElementsAre(kTarget));
}

TEST_F(SessionsTest, SameIdOfAnotherUserIsAnotherSession) {
  ASSERT_TRUE(Hold(kTarget, kA).ok());
  EXPECT_THAT(sessions_.End({1001, "a"}), IsEmpty());
  EXPECT_THAT(detached_, IsEmpty());
}

TEST_F(SessionsTest, ProbesGoWithTheirSession) {
  sessions_.AddProbes(kA, {1, 2, 3});
  sessions_.AddProbes(kB, {4});
  sessions_.ForgetProbes({2});
  sessions_.End(kA);
  EXPECT_THAT(deleted_, ElementsAre(ElementsAre(1, 3)));
  sessions_.End(kA);
  EXPECT_EQ(deleted_.size(), 1u);
}

TEST_F(SessionsTest, ProbesThatAreGoneDoNotKeepTheOthers) {
  delete_result_ = Error{ErrorCode::kNotFound, "PROBE_NOT_FOUND", "", "", {}};
  sessions_.AddProbes(kA, {1, 2});
  sessions_.End(kA);
  EXPECT_THAT(deleted_, ElementsAre(ElementsAre(1, 2), ElementsAre(1), ElementsAre(2)));
}

TEST_F(SessionsTest, RefusedAttachIsUndoneUnlessShared) {
  const Error denied{ErrorCode::kPermissionDenied, "UID_MISMATCH", "", "", {}};
  EXPECT_EQ(Hold(kTarget, kA, denied).error().reason, "UID_MISMATCH");
  EXPECT_THAT(detached_, ElementsAre(kTarget));
  ASSERT_TRUE(Hold(kOther, kB).ok());
  EXPECT_FALSE(Hold(kOther, kA, denied).ok());
  EXPECT_THAT(detached_, ElementsAre(kTarget));
}

}  // namespace
}  // namespace probed::daemon

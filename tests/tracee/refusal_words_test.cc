// Why the kernel does not let us attach, on machines that differ from this one: Yama, a container
// without capabilities, a seccomp filter.

#include <gtest/gtest.h>

#include <cerrno>

#include "engine/sys/ptrace.h"
#include "engine/tracee/attach_check.h"

namespace probed::tracee {
namespace {

constexpr uid_t kUser = 1000;

sys::TaskStatus ProcessOf(uid_t uid) {
  sys::TaskStatus status;
  status.name = "victim";
  status.real_uid = status.effective_uid = status.saved_uid = uid;
  return status;
}

Error Describe(const sys::TaskStatus& target, const Standing& ours) {
  return DescribeRefusal(77, target, ours);
}

TEST(RefusalWords, YamaIsNamedWithItsScope) {
  for (int scope : {1, 2}) {
    Error error = Describe(ProcessOf(kUser), {.uid = kUser, .yama_scope = scope});
    EXPECT_EQ(error.reason, "YAMA_SCOPE") << scope;
    EXPECT_EQ(error.metadata["scope"], std::to_string(scope));
    EXPECT_NE(error.message.find("ptrace_scope=" + std::to_string(scope)), std::string::npos);
    EXPECT_NE(error.hint.find("CAP_SYS_PTRACE"), std::string::npos);
  }
  Error error = Describe(ProcessOf(kUser), {.uid = kUser, .yama_scope = 1});
  EXPECT_NE(error.hint.find("probectl run"), std::string::npos);
}

TEST(RefusalWords, YamaScopeThreeForbidsItToEverybody) {
  for (bool privileged : {false, true}) {
    Error error = Describe(ProcessOf(0), {.privileged = privileged, .uid = kUser, .yama_scope = 3});
    EXPECT_EQ(error.reason, "YAMA_SCOPE");
    EXPECT_NE(error.hint.find("reboot"), std::string::npos);
  }
}

TEST(RefusalWords, YamaIsNotBlamedWhereItDoesNotStandInTheWay) {
  EXPECT_EQ(Describe(ProcessOf(kUser), {.uid = kUser, .yama_scope = 0}).reason,
            "MISSING_CAPABILITY");
  EXPECT_EQ(Describe(ProcessOf(kUser), {.uid = kUser, .yama_scope = -1}).reason,
            "MISSING_CAPABILITY");
  // Another user's process, or one that is not dumpable, could not be had without it either.
  EXPECT_EQ(Describe(ProcessOf(kUser + 1), {.uid = kUser, .yama_scope = 1}).reason, "UID_MISMATCH");
  EXPECT_EQ(Describe(ProcessOf(kUser), {.uid = kUser, .yama_scope = 1, .target_is_dumpable = false})
                .reason,
            "NOT_DUMPABLE");
}

TEST(RefusalWords, AUidThatDiffersInOnePlaceIsAMismatch) {
  sys::TaskStatus target = ProcessOf(kUser);
  target.saved_uid = 0;
  Error error = Describe(target, {.uid = kUser});
  EXPECT_EQ(error.reason, "UID_MISMATCH");
  EXPECT_NE(error.message.find("the daemon as uid 1000"), std::string::npos) << error.message;
}

TEST(RefusalWords, PrivilegedAndYetRefused) {
  Error error = Describe(ProcessOf(kUser), {.privileged = true});
  EXPECT_EQ(error.reason, "MISSING_CAPABILITY");
  EXPECT_NE(error.hint.find("security module"), std::string::npos);
}

TEST(RefusalWords, SeccompFilter) {
  Error error = Describe(ProcessOf(kUser), {.privileged = true, .ptrace_is_filtered = true});
  EXPECT_EQ(error.reason, "SECCOMP_FILTER");
  EXPECT_NE(error.hint.find("SYS_PTRACE"), std::string::npos);
  EXPECT_FALSE(sys::IsPtraceFiltered());
}

TEST(RefusalWords, AllAreErrorsOfPermission) {
  for (const Standing& ours : {Standing{.uid = kUser, .yama_scope = 2}, Standing{.uid = 5},
                               Standing{.ptrace_is_filtered = true}}) {
    EXPECT_EQ(Describe(ProcessOf(kUser), ours).code, ErrorCode::kPermissionDenied);
  }
}

}  // namespace
}  // namespace probed::tracee

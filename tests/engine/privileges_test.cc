// What is said about machines that differ from this one.

#include "engine/privileges.h"

#include <gmock/gmock.h>
#include <linux/capability.h>

namespace probed::engine {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kPtrace = uint64_t{1} << CAP_SYS_PTRACE;

TEST(Privileges, OfAnUnprivilegedDaemonWithoutYama) {
  auto lines = Describe({.uid = 1000});
  EXPECT_THAT(lines, Contains("no CAP_SYS_PTRACE: processes of uid 1000 only"));
  EXPECT_THAT(lines, Contains("no Yama"));
  EXPECT_THAT(lines, Contains(HasSubstr("deleted")));
}

TEST(Privileges, YamaScopesSayWhatTheyLeave) {
  EXPECT_THAT(Describe({.uid = 1000, .yama_scope = 1}), Contains(HasSubstr("probectl run")));
  EXPECT_THAT(Describe({.uid = 1000, .yama_scope = 2}), Contains(HasSubstr("nothing can be")));
  EXPECT_THAT(Describe({.capabilities = kPtrace, .yama_scope = 2}),
              Contains(HasSubstr("no restriction with CAP_SYS_PTRACE")));
  EXPECT_THAT(Describe({.capabilities = kPtrace, .yama_scope = 3}),
              Contains("Yama ptrace_scope 3: nothing can be attached to"));
}

TEST(Privileges, OfRoot) {
  auto lines = Describe({.capabilities = ~uint64_t{0}, .yama_scope = 0});
  EXPECT_THAT(lines, Contains("CAP_SYS_PTRACE: processes of every user"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("deleted"))));
}

TEST(Privileges, AFilterComesFirst) {
  EXPECT_THAT(Describe({.ptrace_is_filtered = true}).front(), HasSubstr("seccomp filter"));
}

}  // namespace
}  // namespace probed::engine

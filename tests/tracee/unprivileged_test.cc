// Refusals that root never meets: asked by a process of another user.

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/fork.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

constexpr uid_t kUser = 65534;

// The reason that an unprivileged process gets for attaching to a child prepared by `prepare`, or
// to `target` when that is not 0. Runs in a child, because a user change is for good.
std::string ReasonAsUser(pid_t target, const std::function<void()>& prepare) {
  int report[2];
  if (::pipe(report) != 0) return "no pipe";
  pid_t asker = ForkOrDie();
  if (asker == 0) {
    if (::setgid(kUser) != 0 || ::setuid(kUser) != 0) ::_exit(1);
    int ready[2];
    if (::pipe(ready) != 0) ::_exit(1);
    pid_t child = ForkOrDie();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      prepare();
      ::close(ready[1]);
      while (true)
        ::pause();
    }
    ::close(ready[1]);
    char byte;
    [[maybe_unused]] ssize_t end = ::read(ready[0], &byte, 1);
    BreakpointObserver observer;
    std::string reason = "no tracer";
    if (auto tracer = Tracer::Start(observer); tracer.ok()) {
      (*tracer)->Call([&] {
        auto process = (*tracer)->Attach({.pid = target != 0 ? target : child});
        reason = process.ok() ? "" : process.error().reason;
      });
    }
    ::kill(child, SIGKILL);
    [[maybe_unused]] ssize_t written = ::write(report[1], reason.data(), reason.size());
    ::_exit(0);
  }
  ::close(report[1]);
  std::string reason(64, '\0');
  ssize_t count = ::read(report[0], reason.data(), reason.size());
  ::close(report[0]);
  ::waitpid(asker, nullptr, __WNOTHREAD);
  reason.resize(count < 0 ? 0 : static_cast<size_t>(count));
  return reason;
}

class UnprivilegedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  }
};

TEST_F(UnprivilegedTest, ItsOwnChild) {
  EXPECT_EQ(ReasonAsUser(0, [] { ::prctl(PR_SET_DUMPABLE, 1); }), "");
}

TEST_F(UnprivilegedTest, UndumpableProcess) {
  EXPECT_EQ(ReasonAsUser(0, [] { ::prctl(PR_SET_DUMPABLE, 0); }), "NOT_DUMPABLE");
}

TEST_F(UnprivilegedTest, AnotherUsersProcess) {
  Puppet puppet("counter", {"1"});
  puppet.ReadLine();
  EXPECT_EQ(ReasonAsUser(puppet.pid(), [] {}), "UID_MISMATCH");
}

}  // namespace
}  // namespace probed::tracee

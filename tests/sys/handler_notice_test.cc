// What the kernel reports of a thread that was stepped into a handler of its own.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/sys/signal.h"

namespace probed::sys {
namespace {

volatile sig_atomic_t handled = 0;

// Stops once; exits with 0 if its handler has run.
pid_t StartChild() {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::alarm(20);  // whatever becomes of the test
  ::signal(SIGUSR1, [](int) { handled = 1; });
  ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  ::raise(SIGSTOP);
  ::_exit(handled == 1 ? 0 : 1);
}

// Lets it go on with a signal; siginfo of the SIGTRAP that it stops with.
siginfo_t Step(pid_t pid, unsigned long signal) {
  siginfo_t info{};
  int status = 0;
  EXPECT_EQ(::ptrace(PTRACE_SINGLESTEP, pid, nullptr, signal), 0);
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP) << std::hex << status;
  EXPECT_EQ(::ptrace(PTRACE_GETSIGINFO, pid, nullptr, &info), 0);
  return info;
}

TEST(HandlerNotice, IsToldFromAStep) {
  const pid_t pid = StartChild();
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(IsHandlerNotice(Step(pid, SIGUSR1)));
  EXPECT_FALSE(IsHandlerNotice(Step(pid, 0)));
  EXPECT_EQ(::ptrace(PTRACE_CONT, pid, nullptr, nullptr), 0);
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << std::hex << status;
}

}  // namespace
}  // namespace probed::sys

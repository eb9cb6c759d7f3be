// Processes that cannot be attached to, and what is said about them.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "engine/sys/proc.h"
#include "tests/support/fork.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

// A process that does `work` and then waits to be killed.
class Helper {
 public:
  explicit Helper(const std::function<void()>& work) : pid_(ForkOrDie()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      work();
      while (true)
        ::pause();
    }
  }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, __WNOTHREAD);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

class RefusalTest : public TracerTest {
 protected:
  pid_t TracerOf(pid_t pid) {
    auto status = sys::ReadTaskStatus(pid);
    return status.ok() ? status->tracer_pid : 0;
  }
};

TEST_F(RefusalTest, NoSuchProcess) {
  EXPECT_EQ(Attach(0x3fffff), "PROCESS_NOT_FOUND");
  EXPECT_EQ(Attach(0), "PROCESS_NOT_FOUND");
  EXPECT_EQ(Attach(-5), "PROCESS_NOT_FOUND");
}

TEST_F(RefusalTest, Itself) {
  EXPECT_EQ(Attach(::getpid()), "SELF");
}

TEST_F(RefusalTest, Init) {
  EXPECT_EQ(Attach(1), "INIT");
}

TEST_F(RefusalTest, KernelThread) {
  auto stat = sys::ReadTaskStat(2);
  if (!stat.ok() || !stat->kernel_thread) GTEST_SKIP() << "no kernel threads in this pid namespace";
  EXPECT_EQ(Attach(2), "KERNEL_THREAD");
}

TEST_F(RefusalTest, ThreadIdOfAnotherProcess) {
  Puppet puppet("counter", {"1"});
  puppet.ReadLine();
  std::vector<pid_t> tasks = *sys::ListTasks(puppet.pid());
  ASSERT_EQ(tasks.size(), 2u);
  Error error = AttachError(std::max(tasks[0], tasks[1]));
  EXPECT_EQ(error.reason, "PROCESS_NOT_FOUND");
  EXPECT_NE(error.hint.find(std::to_string(puppet.pid())), std::string::npos);
}

TEST_F(RefusalTest, Zombie) {
  Helper helper([] { ::_exit(0); });
  ASSERT_TRUE(Eventually([&] { return ThreadStates(helper.pid()) == "Z"; }));
  EXPECT_EQ(Attach(helper.pid()), "ZOMBIE");
}

TEST_F(RefusalTest, AlreadyTraced) {
  Helper target([] {});
  Helper other([&] { ::ptrace(PTRACE_SEIZE, target.pid(), nullptr, nullptr); });
  ASSERT_TRUE(Eventually([&] { return TracerOf(target.pid()) == other.pid(); }));
  Error error = AttachError(target.pid());
  EXPECT_EQ(error.reason, "ALREADY_TRACED");
  EXPECT_EQ(error.metadata["tracer_pid"], std::to_string(other.pid()));
  EXPECT_EQ(error.metadata["tracer_comm"], sys::ReadComm(other.pid()));
  EXPECT_NE(error.message.find(std::to_string(other.pid())), std::string::npos);
}

TEST_F(RefusalTest, AlreadyAttached) {
  Puppet puppet("counter", {"1"});
  puppet.ReadLine();
  EXPECT_EQ(Attach(puppet.pid()), "");
  EXPECT_EQ(Attach(puppet.pid()), "ALREADY_ATTACHED");
}

// One thread of a process is another's tracee: none of the others may stay ours.
TEST_F(RefusalTest, PartialAttachIsUndone) {
  Puppet puppet("counter", {"8", "10"});
  puppet.ReadLine();
  std::vector<pid_t> tasks = *sys::ListTasks(puppet.pid());
  pid_t last = *std::max_element(tasks.begin(), tasks.end());
  {
    Helper other([&] { ::ptrace(PTRACE_SEIZE, last, nullptr, nullptr); });
    ASSERT_TRUE(Eventually([&] { return TracerOf(last) == other.pid(); }));
    EXPECT_EQ(Attach(puppet.pid()), "ALREADY_TRACED");
    for (pid_t tid : tasks)
      EXPECT_EQ(TracerOf(tid), tid == last ? other.pid() : 0);
  }
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 80u);
}

TEST_F(RefusalTest, ProcessThatTracesUs) {
  // The helper traces this process's main thread; the tracer thread asks.
  Helper other([self = ::getpid()] { ::ptrace(PTRACE_SEIZE, self, nullptr, nullptr); });
  ASSERT_TRUE(Eventually([&] { return TracerOf(::getpid()) == other.pid(); }));
  EXPECT_EQ(Attach(other.pid()), "ANCESTOR_TRACES_US");
}

TEST_F(RefusalTest, ProcessThatDiesMeanwhile) {
  for (int i = 0; i < 50; ++i) {
    Puppet puppet("counter", {"16", "0"});
    puppet.ReadLine();
    std::thread killer([&] { ::kill(puppet.pid(), SIGKILL); });
    std::string reason = Attach(puppet.pid());
    killer.join();
    bool is_expected = reason.empty() || reason == "PROCESS_GONE" || reason == "ZOMBIE" ||
                       reason == "PROCESS_NOT_FOUND";
    EXPECT_TRUE(is_expected) << reason;
    EXPECT_TRUE(puppet.WaitForEnd().has_value());
    bool is_forgotten = Eventually([&] {
      bool none = false;
      tracer_->Call([&] { none = tracer_->processes().empty(); });
      return none;
    });
    EXPECT_TRUE(is_forgotten);
  }
}

}  // namespace
}  // namespace probed::tracee

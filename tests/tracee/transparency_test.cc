// What a program and its parent may not notice: interrupted calls, job control, signals.

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "engine/tracee/remote_call.h"
#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

class BlockedCallTest : public TracerTest, public testing::WithParamInterface<const char*> {};

TEST_P(BlockedCallTest, ReturnsWhatItWouldHave) {
  Puppet puppet("blocked", {GetParam()});
  std::string first = puppet.ReadLine();
  if (first == "unsupported") GTEST_SKIP() << "this kernel has no " << GetParam();
  ASSERT_EQ(first, "ready");
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Attach(puppet.pid()), "");
    tracer_->Call([&] {
      Process* process = tracer_->Find(puppet.pid());
      ASSERT_TRUE(tracer_->Detach(*process, [](Stopped&) { return Status(); }).ok());
    });
  }
  // Asleep again: what changes a futex before that is seen by the call's restart (EAGAIN).
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  puppet.Send();
  puppet.CloseInput();
  EXPECT_EQ(puppet.ReadNumber("errors"), 0u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    Calls, BlockedCallTest,
    testing::Values("epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select",
                    "pselect", "read", "splice", "write", "open", "accept", "accept_timeout",
                    "connect_timeout", "recv_timeout", "recvmsg_timeout", "semop", "semtimedop",
                    "msgrcv", "msgsnd", "mq_timedreceive", "sigtimedwait", "sigwaitinfo",
                    "signalfd", "pause", "sigsuspend", "nanosleep", "clock_nanosleep", "futex",
                    "futex_timeout", "futex_waitv", "waitid", "flock", "fcntl", "eventfd",
                    "timerfd", "inotify", "terminal", "io_getevents", "io_uring_enter"),
    [](const auto& call) { return std::string(call.param); });

// The system call made for us must not disturb the one the thread is in.
TEST_P(BlockedCallTest, SurvivesARemoteCall) {
  Puppet puppet("blocked", {GetParam()});
  std::string first = puppet.ReadLine();
  if (first == "unsupported") GTEST_SKIP() << "this kernel has no " << GetParam();
  ASSERT_EQ(first, "ready");
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  ASSERT_EQ(Attach(puppet.pid()), "");
  for (int i = 0; i < 100; ++i) {
    auto call = [](Stopped& stopped) -> Status {
      PROBED_TRY([[maybe_unused]] uint64_t pid, RemoteSyscall(stopped, SYS_getpid, {}));
      return {};
    };
    ASSERT_EQ(WithOneStopped(puppet.pid(), call), "");
  }
  // Asleep again: what changes a futex before that is seen by the call's restart (EAGAIN).
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  puppet.Send();
  puppet.CloseInput();
  EXPECT_EQ(puppet.ReadNumber("errors"), 0u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

class SignalTest : public TracerTest {
 protected:
  void DetachUnchanged(pid_t pid) {
    tracer_->Call([&] {
      Process* process = tracer_->Find(pid);
      ASSERT_NE(process, nullptr);
      Status status = tracer_->Detach(*process, [](Stopped&) { return Status(); });
      EXPECT_TRUE(status.ok());
    });
  }
};

TEST_F(SignalTest, ParentSeesStopsAndContinuations) {
  Puppet puppet("counter", {"4", "0"});
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_EQ(Attach(puppet.pid()), "");
  Insert(puppet.pid(), nop);
  puppet.Send();
  for (int signal : {SIGSTOP, SIGTSTP}) {
    ::kill(puppet.pid(), signal);
    std::optional<int> stopped = puppet.NextChange();
    ASSERT_TRUE(stopped && WIFSTOPPED(*stopped));
    EXPECT_EQ(WSTOPSIG(*stopped), signal);
    // Work on the stopped process leaves it stopped.
    uint64_t hits = observer_.hits();
    auto call = [](Stopped& stopped_thread) -> Status {
      PROBED_TRY([[maybe_unused]] uint64_t pid, RemoteSyscall(stopped_thread, SYS_getpid, {}));
      return {};
    };
    EXPECT_EQ(WithOneStopped(puppet.pid(), call), "");
    EXPECT_EQ(observer_.hits(), hits);
    ::kill(puppet.pid(), SIGCONT);
    std::optional<int> continued = puppet.NextChange();
    ASSERT_TRUE(continued && WIFCONTINUED(*continued));
    EXPECT_TRUE(Eventually([&] { return observer_.hits() > hits + 100; }));
  }
  EXPECT_EQ(Detach(puppet.pid()), "");
  puppet.Send();
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(SignalTest, StoppedProcessStaysStoppedThroughAttachAndDetach) {
  Puppet puppet("counter", {"4", "100"});
  puppet.ReadLine();
  ::kill(puppet.pid(), SIGSTOP);
  ASSERT_TRUE(WIFSTOPPED(*puppet.NextChange()));
  ASSERT_EQ(Attach(puppet.pid()), "");
  DetachUnchanged(puppet.pid());
  EXPECT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "TTTTT"; }));
  ::kill(puppet.pid(), SIGCONT);
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 400u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(SignalTest, StopStormDuringAttachAndDetach) {
  Puppet puppet("counter", {"4", "0"});
  puppet.ReadLine();
  puppet.Send();
  std::atomic<bool> over = false;
  std::thread storm([&] {
    while (!over.load()) {
      ::kill(puppet.pid(), SIGSTOP);
      ::kill(puppet.pid(), SIGCONT);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Attach(puppet.pid()), "");
    DetachUnchanged(puppet.pid());
  }
  over.store(true);
  storm.join();
  ::kill(puppet.pid(), SIGCONT);
  puppet.Send();
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(SignalTest, SignalsArriveWithTheirOrigin) {
  Puppet puppet("signals", {});
  ASSERT_EQ(puppet.ReadLine(), "ready");
  for (int i = 1; i <= 100; ++i) {
    ASSERT_EQ(Attach(puppet.pid()), "");
    auto call = [&](Stopped& stopped) -> Status {
      sigval value{.sival_int = i};
      ::sigqueue(puppet.pid(), SIGRTMIN, value);
      PROBED_TRY([[maybe_unused]] uint64_t pid, RemoteSyscall(stopped, SYS_getpid, {}));
      return {};
    };
    ASSERT_EQ(WithOneStopped(puppet.pid(), call), "");
    DetachUnchanged(puppet.pid());
  }
  puppet.CloseInput();
  // Count, sum of the values, and how many came from sigqueue() of this process.
  EXPECT_EQ(puppet.ReadLine(), "signals 100 5050 100");
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

TEST_F(SignalTest, IgnoredSignalsDoNotInterrupt) {
  Puppet puppet("blocked", {"epoll_wait"});
  ASSERT_EQ(puppet.ReadLine(), "ready");
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  ASSERT_EQ(Attach(puppet.pid()), "");
  // One by one: of two signals for the process, a thread may take the one that has woken another,
  // and that thread's EINTR is never shown to a tracer (kernel/signal.c, complete_signal).
  for (int signal : {SIGWINCH, SIGCHLD, SIGURG}) {
    ::kill(puppet.pid(), signal);
    EXPECT_TRUE(
        Eventually([&] { return observer_.Count("signal " + std::to_string(signal)) > 0; }));
    EXPECT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "SS"; }));
  }
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("errors"), 0u);
}

}  // namespace
}  // namespace probed::tracee

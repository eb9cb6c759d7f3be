// Attaching in the middle of an exec and of a vfork: bounded in time, and nobody is harmed.

#include <chrono>
#include <iostream>

#include "tests/tracee/tracer_test.h"

namespace probed::tracee {
namespace {

using std::chrono::steady_clock;

class BusyAttachTest : public TracerTest {
 protected:
  // However often an exec comes between.
  bool Leave(pid_t pid) {
    return Eventually([&] {
      bool left = false;
      tracer_->Call([&] {
        Process* process = tracer_->Find(pid);
        auto clean = [](Stopped&) -> Status { return {}; };
        left = process != nullptr && tracer_->Detach(*process, clean).ok();
      });
      return left;
    });
  }
};

// An exec waits for the threads that it ends to be reaped, which is up to us, while our seize of
// another thread waits for the exec.
TEST_F(BusyAttachTest, AttachWhileAThreadExecs) {
  Puppet puppet("exec_threads", {"12"});
  ASSERT_EQ(puppet.ReadLine(), "ready");
  const auto end = steady_clock::now() + std::chrono::seconds(10);
  std::chrono::duration<double> longest{};
  int rounds = 0;
  for (; rounds < 300 && steady_clock::now() < end; ++rounds) {
    auto start = steady_clock::now();
    ASSERT_EQ(Attach(puppet.pid()), "") << rounds;
    longest = std::max<std::chrono::duration<double>>(longest, steady_clock::now() - start);
    ASSERT_TRUE(Leave(puppet.pid())) << rounds;
  }
  std::cout << rounds << " attaches, the longest " << longest.count() << " s\n";
  EXPECT_TRUE(Eventually([&] { return IsUntraced(puppet.pid()); }));
  puppet.CloseInput();
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

// What runs in the memory of a process is attached to with it: alone it would die of our
// breakpoint.
TEST_F(BusyAttachTest, AttachToAVforkingParent) {
  Puppet puppet("vforking");
  RemoteAddr nop{puppet.ReadNumber("ready", 16)};
  ASSERT_TRUE(Eventually([&] { return ThreadStates(puppet.pid()) == "D"; }));
  auto start = steady_clock::now();
  ASSERT_EQ(Attach(puppet.pid(), true), "");
  Insert(puppet.pid(), nop);
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(4));
  puppet.Send();
  EXPECT_EQ(puppet.ReadNumber("calls"), 1u);
  EXPECT_EQ(observer_.hits(), 1u);
  EXPECT_EQ(puppet.WaitForEnd(), 0);
}

}  // namespace
}  // namespace probed::tracee

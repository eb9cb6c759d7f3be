#include "engine/sys/process_events.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "engine/sys/proc.h"
#include "tests/support/fork.h"

namespace probed::sys {
namespace {

using std::chrono::steady_clock;

// In a container nothing is told: then everything is to be looked at, and that finds it.
TEST(ProcessEventsTest, AProgramThatIsExecutedIsToldOrLookedFor) {
  ProcessEvents events;
  const pid_t child = ForkOrDie();
  if (child == 0) {
    ::execl("/bin/true", "true", nullptr);
    ::_exit(127);
  }
  const auto deadline = steady_clock::now() + std::chrono::seconds(20);
  bool seen = false;
  while (!seen && steady_clock::now() < deadline) {
    auto changed = events.Next(std::chrono::milliseconds(1000));
    EXPECT_TRUE(changed.all || events.told());
    if (changed.all) changed.pids = ListProcesses();
    seen = std::count(changed.pids.begin(), changed.pids.end(), child) > 0;
  }
  EXPECT_TRUE(seen);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(ProcessEventsTest, ThreadsAreNotProcesses) {
  const auto all = ListProcesses();
  EXPECT_EQ(std::count(all.begin(), all.end(), ::getpid()), 1);
  EXPECT_EQ(ReadExecutable(::getpid()), ReadExecutable(::gettid()));
  EXPECT_EQ(ReadExecutable(2), "") << "a thread of the kernel, or nothing at all";
}

}  // namespace
}  // namespace probed::sys

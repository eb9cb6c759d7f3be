#include "engine/sys/proc.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "engine/sys/signal.h"
#include "tests/support/fork.h"

namespace probed::sys {
namespace {

TEST(ProcTest, StatusOfThisProcess) {
  ::signal(SIGWINCH, SIG_IGN);
  Result<TaskStatus> status = ReadTaskStatus(::getpid());
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status->tgid, ::getpid());
  EXPECT_EQ(status->parent_pid, ::getppid());
  EXPECT_EQ(status->real_uid, ::getuid());
  EXPECT_EQ(status->effective_uid, ::geteuid());
  EXPECT_EQ(status->state, 'R');
  EXPECT_NE(status->ignored & SignalBit(SIGWINCH), 0u);
  EXPECT_EQ(status->namespace_pids.back(), ::getpid());
}

TEST(ProcTest, StatusTellsOfAShadowStack) {
  auto has = [](std::string_view features) {
    std::string text = "Name:\tcat\nState:\tR (running)\nx86_Thread_features:\t";
    text.append(features).append("x86_Thread_features_locked:\tshstk wrss \n");
    return ParseTaskStatus(text).shadow_stack;
  };
  EXPECT_TRUE(has("shstk \n"));
  EXPECT_TRUE(has("wrss shstk \n"));
  EXPECT_FALSE(has("\n"));
  EXPECT_FALSE(has("wrss \n"));
  EXPECT_EQ(ParseTaskStatus("Name:\tcat\nTgid:\t7\n").tgid, 7);
}

TEST(ProcTest, NameWithParenthesesAndSpaces) {
  char old_name[16];
  ::prctl(PR_GET_NAME, old_name);
  Result<TaskStat> before = ReadTaskStat(::getpid());
  ::prctl(PR_SET_NAME, "a) R (b 1 2");
  Result<TaskStat> after = ReadTaskStat(::getpid());
  EXPECT_EQ(ReadComm(::getpid()), "a) R (b 1 2");
  ::prctl(PR_SET_NAME, old_name);
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_GT(before->start_ticks, 0u);
  EXPECT_EQ(before->start_ticks, after->start_ticks);
  EXPECT_FALSE(after->kernel_thread);
}

TEST(ProcTest, TasksHoldTheLeader) {
  Result<std::vector<pid_t>> tasks = ListTasks(::getpid());
  ASSERT_TRUE(tasks.ok());
  EXPECT_NE(std::find(tasks->begin(), tasks->end(), ::getpid()), tasks->end());
  EXPECT_TRUE(IsTaskOf(::getpid(), ::getpid()));
  EXPECT_FALSE(IsTaskOf(::getpid(), 1));
}

TEST(ProcTest, NothingThere) {
  constexpr pid_t kNobody = 0x3fffff;
  EXPECT_EQ(ReadTaskStatus(kNobody).error().reason, "PROCESS_NOT_FOUND");
  EXPECT_EQ(ReadTaskStat(kNobody).error().reason, "PROCESS_NOT_FOUND");
  EXPECT_EQ(ListTasks(kNobody).error().reason, "PROCESS_NOT_FOUND");
  EXPECT_EQ(ReadComm(kNobody), "");
}

TEST(ProcTest, ForkedChildHasMemoryOfItsOwn) {
  pid_t child = ForkOrDie();
  if (child == 0) {
    while (true)
      ::pause();
  }
  EXPECT_NE(SharesMemory(::getpid(), child), Sharing::kYes);
  EXPECT_NE(SharesMemory(::getpid(), ::getpid()), Sharing::kNo);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace probed::sys

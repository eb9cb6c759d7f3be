#include "engine/sys/wait_status.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace probed::sys {
namespace {

// Statuses as wait(2) and ptrace(2) define their bits.
constexpr int Stopped(int signal, int event = 0) {
  return event << 16 | signal << 8 | 0x7f;
}

TEST(WaitStatusTest, EveryKindIsTold) {
  EXPECT_EQ(std::get<Exited>(DecodeWaitStatus(3 << 8)).code, 3);
  EXPECT_EQ(std::get<Killed>(DecodeWaitStatus(SIGSEGV | 0x80)).signal, SIGSEGV);
  EXPECT_EQ(std::get<SignalStop>(DecodeWaitStatus(Stopped(SIGTRAP))).signal, SIGTRAP);
  EXPECT_EQ(std::get<SignalStop>(DecodeWaitStatus(Stopped(SIGSTOP))).signal, SIGSTOP);
  EXPECT_TRUE(std::holds_alternative<SyscallStop>(DecodeWaitStatus(Stopped(SIGTRAP | 0x80))));
  EXPECT_TRUE(std::holds_alternative<InterruptStop>(DecodeWaitStatus(Stopped(SIGTRAP, 128))));
  EXPECT_EQ(std::get<GroupStop>(DecodeWaitStatus(Stopped(SIGTSTP, 128))).signal, SIGTSTP);
  EXPECT_EQ(std::get<ChildStop>(DecodeWaitStatus(Stopped(SIGTRAP, 1))).kind, ChildKind::kFork);
  EXPECT_EQ(std::get<ChildStop>(DecodeWaitStatus(Stopped(SIGTRAP, 2))).kind, ChildKind::kVfork);
  EXPECT_EQ(std::get<ChildStop>(DecodeWaitStatus(Stopped(SIGTRAP, 3))).kind, ChildKind::kClone);
  EXPECT_TRUE(std::holds_alternative<ExecStop>(DecodeWaitStatus(Stopped(SIGTRAP, 4))));
  EXPECT_EQ(std::get<OtherStop>(DecodeWaitStatus(Stopped(SIGTRAP, 6))).event, 6);
}

}  // namespace
}  // namespace probed::sys

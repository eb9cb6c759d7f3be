#include "engine/sys/wait_status.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <csignal>

namespace probed::sys {
namespace {

constexpr int kSyscallBit = 0x80;  // PTRACE_O_TRACESYSGOOD

WaitStatus DecodeEvent(int event, int signal) {
  switch (event) {
    case PTRACE_EVENT_STOP:
      if (signal == SIGTRAP) return InterruptStop{};
      return GroupStop{signal};
    case PTRACE_EVENT_CLONE:
      return ChildStop{ChildKind::kClone};
    case PTRACE_EVENT_FORK:
      return ChildStop{ChildKind::kFork};
    case PTRACE_EVENT_VFORK:
      return ChildStop{ChildKind::kVfork};
    case PTRACE_EVENT_EXEC:
      return ExecStop{};
    default:
      return OtherStop{event};
  }
}

}  // namespace

WaitStatus DecodeWaitStatus(int status) {
  if (WIFEXITED(status)) return Exited{WEXITSTATUS(status)};
  if (WIFSIGNALED(status)) return Killed{WTERMSIG(status)};
  int signal = WSTOPSIG(status);
  if (int event = status >> 16; event != 0) return DecodeEvent(event, signal);
  if (signal == (SIGTRAP | kSyscallBit)) return SyscallStop{};
  return SignalStop{signal};
}

bool IsDeath(int status) {
  return WIFEXITED(status) || WIFSIGNALED(status);
}

bool IsEnding(int status) {
  return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_EXIT;
}

}  // namespace probed::sys

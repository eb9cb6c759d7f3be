#pragma once
// A wait status of a seized thread, decoded once into the closed set of things it can mean.
// ptrace(2) "Stopped tracees".

#include <sys/types.h>

#include <cstdint>
#include <variant>

namespace probed::sys {

struct SignalStop {
  int signal = 0;  // about to be delivered
};

// PTRACE_EVENT_STOP with SIGTRAP: an interrupt of ours took effect, a new thread or child is about
// to start, or a group-stop has ended.
struct InterruptStop {};

// PTRACE_EVENT_STOP with a stop signal: the whole process is stopped by job control.
struct GroupStop {
  int signal = 0;
};

enum class ChildKind : uint8_t { kClone, kFork, kVfork };

// PTRACE_EVENT_CLONE, FORK or VFORK in the parent, before the call returns.
struct ChildStop {
  ChildKind kind = ChildKind::kClone;
};

struct ExecStop {};
struct SyscallStop {};

// A stop that none of the options asked for; resumed as it is.
struct OtherStop {
  int event = 0;
};

struct Exited {
  int code = 0;
};
struct Killed {
  int signal = 0;
};

using WaitStatus = std::variant<SignalStop, InterruptStop, GroupStop, ChildStop, ExecStop,
                                SyscallStop, OtherStop, Exited, Killed>;

// Needs PTRACE_O_TRACESYSGOOD, which tells a syscall-stop from a SIGTRAP.
WaitStatus DecodeWaitStatus(int status);

bool IsDeath(int status);
// PTRACE_EVENT_EXIT: the thread is about to end, its memory and registers are there still.
bool IsEnding(int status);

}  // namespace probed::sys

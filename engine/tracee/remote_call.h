#pragma once
// System calls made by a stopped thread on our behalf. Registers (orig_rax included, so that an
// interrupted system call restarts) are restored whatever happens; should we die before that, the
// thread waits for whoever has what the process's CallRecorder has kept.

#include <array>
#include <cstdint>

#include "base/result.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

// What a call reads or writes may be in so many bytes below the red zone of the thread's stack.
inline constexpr uint64_t kRoomOnStack = 128;

// Runs the call with a deadline and returns its value; a negative errno becomes an Error.
// Refused with SECCOMP_ACTIVE when any thread of the process is under seccomp.
Result<uint64_t> RemoteSyscall(Stopped& stopped, long number,
                               const std::array<uint64_t, 6>& arguments);

// Lets the thread alone run until it has made its next system call, and stops it before the next
// instruction. For code that is known to make one soon.
Status RunThroughSyscall(Stopped& stopped);

// Moves a thread from a stop inside a system call (clone, exec or syscall-exit) to the point just
// before its next instruction, where its registers may be replaced. Nothing to do elsewhere.
// For the files of engine/tracee.
Status ReachUserBoundary(Thread& thread);

}  // namespace probed::tracee

#pragma once
// ptrace(2), one function per request. Every call must come from the thread that seized `tid`.
// ESRCH means that the thread is dead or not stopped; callers treat it as normal.

#include <sys/types.h>
#include <sys/user.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "engine/sys/errno_value.h"

namespace probed::sys {

// Attaches without stopping. `options` are PTRACE_O_* bits. Waits while the process is in an exec;
// EINTR when kWakeSignal came.
Errno Seize(pid_t tid, uint64_t options);
// Of a stopped thread, in the place of those that it has.
Errno SetOptions(pid_t tid, uint64_t options);
Errno Interrupt(pid_t tid);
// Whether a seccomp filter of our own keeps us from ptrace.
bool IsPtraceFiltered();
// Lets a thread in group-stop stay stopped while later stops of it are reported.
Errno Listen(pid_t tid);
Errno Continue(pid_t tid, int signal);
Errno Step(pid_t tid, int signal);
Errno ContinueToSyscall(pid_t tid, int signal);
Errno Detach(pid_t tid, int signal);

Errno GetRegs(pid_t tid, user_regs_struct& regs);
Errno SetRegs(pid_t tid, const user_regs_struct& regs);
// The same but for segments and their bases, which cost a fifth of the call.
Errno SetGeneralRegs(pid_t tid, const user_regs_struct& regs);
// The instruction pointer alone: a third of the cost of a whole set.
Errno SetIp(pid_t tid, uint64_t ip);
// NT_X86_XSTATE, in XSAVE layout. SetXState takes what GetXState gave.
Result<std::vector<std::byte>> GetXState(pid_t tid);
Status SetXState(pid_t tid, const std::vector<std::byte>& state);

Errno GetSigInfo(pid_t tid, siginfo_t& info);
Errno SetSigInfo(pid_t tid, const siginfo_t& info);
Errno GetEventMessage(pid_t tid, uint64_t& message);
// Where a signal waits to be delivered: to the thread, or to any that lets it in.
enum class SignalQueue : uint8_t { kThread, kProcess };
bool HasPendingSignal(pid_t tid, int signal, SignalQueue queue = SignalQueue::kThread);
// The signal mask, bit N-1 for signal N. While a call has replaced it for its duration (ppoll), the
// program's own is read, and setting it ends the replacement.
Errno GetSigMask(pid_t tid, uint64_t& mask);
Errno SetSigMask(pid_t tid, uint64_t mask);
// Where the thread has registered its restartable-sequences area (rseq(2)); 0 when it has not.
Errno GetRseqArea(pid_t tid, RemoteAddr& area);
// In a syscall-stop: whether the call has returned.
Errno IsSyscallExit(pid_t tid, bool& is_exit);

// Writes one word of memory, page protection notwithstanding.
Errno PokeText(pid_t tid, uint64_t address, uint64_t word);

}  // namespace probed::sys

#include "engine/tracee/syscall_restart.h"

#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/sys/proc.h"
#include "engine/sys/signal.h"

namespace probed::tracee {
namespace {

constexpr uint64_t kSyscallLength = 2;
constexpr uint64_t kUserCodeSegment64 = 0x33;

// Calls for which EINTR means that nothing has been done yet, which close() is not; or that, made
// again, go on with what they had begun: connect(), as the kernel itself does without SO_SNDTIMEO.
constexpr std::array kRestartable = std::to_array<uint64_t>(
    {SYS_epoll_wait,      SYS_epoll_pwait,  SYS_epoll_pwait2,  SYS_semop,          SYS_semtimedop,
     SYS_rt_sigtimedwait, SYS_io_getevents, SYS_io_pgetevents, SYS_io_uring_enter, SYS_futex,
     SYS_futex_waitv,     SYS_accept,       SYS_accept4,       SYS_connect,        SYS_read,
     SYS_readv,           SYS_recvfrom,     SYS_recvmsg,       SYS_recvmmsg,       SYS_write,
     SYS_writev,          SYS_sendto,       SYS_sendmsg,       SYS_msgrcv,         SYS_msgsnd,
     SYS_mq_timedreceive, SYS_mq_timedsend, SYS_pselect6,      SYS_ppoll});

bool WasInterrupted(const user_regs_struct& regs) {
  bool in_syscall = static_cast<int64_t>(regs.orig_rax) >= 0 && regs.cs == kUserCodeSegment64;
  return in_syscall && static_cast<int64_t>(regs.rax) == -EINTR &&
         std::find(kRestartable.begin(), kRestartable.end(), regs.orig_rax) != kRestartable.end();
}

void MakeCallAgain(Thread& thread) {
  user_regs_struct& regs = thread.MutableRegs();
  regs.rax = regs.orig_rax;
  regs.rip -= kSyscallLength;
}

// Signals that an untraced program never notices: the kernel queues them only to show them to us
// (kernel/signal.c, sig_ignored).
uint64_t Unnoticed(const sys::TaskStatus& status) {
  return status.ignored | (sys::kIgnoredByDefault & ~status.caught);
}

// With such a signal on its way the program gets its EINTR rightly.
bool HasSignalToHandle(const sys::TaskStatus& status) {
  return (status.pending & ~status.blocked & ~Unnoticed(status)) != 0;
}

}  // namespace

void UndoInterruption(Thread& thread) {
  if (!WasInterrupted(thread.Regs())) return;
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(thread.tid());
  if (!status.ok() || HasSignalToHandle(*status)) return;
  MakeCallAgain(thread);
}

void UndoInterruptionBySignal(Thread& thread, int signal) {
  if (!WasInterrupted(thread.Regs())) return;
  Result<sys::TaskStatus> status = sys::ReadTaskStatus(thread.tid());
  if (!status.ok() || HasSignalToHandle(*status)) return;
  if ((Unnoticed(*status) & sys::SignalBit(signal)) != 0) MakeCallAgain(thread);
}

}  // namespace probed::tracee

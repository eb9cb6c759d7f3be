#include "engine/sys/pidfd.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace probed::sys {
namespace {

constexpr unsigned kThread = O_EXCL;  // PIDFD_THREAD of linux/pidfd.h

UniqueFd Open(pid_t id, unsigned flags) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, id, flags)));
}

}  // namespace

Result<UniqueFd> OpenProcess(pid_t pid) {
  UniqueFd process = Open(pid, 0);
  if (!process.valid()) return ErrnoError(errno, "pidfd_open");
  return process;
}

Result<UniqueFd> OpenThread(pid_t tid) {
  UniqueFd thread = Open(tid, kThread);
  if (!thread.valid()) return OpenProcess(tid);
  return thread;
}

Result<UniqueFd> OpenEndOfThread(pid_t tid) {
  UniqueFd thread = Open(tid, kThread);
  if (!thread.valid()) return OpenProcess(::getpid());
  return thread;
}

}  // namespace probed::sys

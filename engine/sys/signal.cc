#include "engine/sys/signal.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "engine/sys/interruptible_call.h"

namespace probed::sys {
namespace {

void OnWake(int signal, siginfo_t*, void* context) {
  EndInterruptibleCall(signal, context);
}

// Without SA_NOCLDSTOP every stop of a tracee is also a SIGCHLD, which wakes some other thread of
// the process for nothing if one does not block it.
Status PrepareChildSignal() {
  struct sigaction action {};
  if (::sigaction(SIGCHLD, nullptr, &action) != 0) return ErrnoError(errno, "sigaction SIGCHLD");
  bool has_handler = action.sa_handler != SIG_IGN && action.sa_handler != SIG_DFL;
  if (has_handler && (action.sa_flags & SA_NOCLDWAIT) == 0) return {};
  action.sa_handler = SIG_DFL;
  action.sa_flags = SA_NOCLDSTOP;
  if (::sigaction(SIGCHLD, &action, nullptr) != 0) return ErrnoError(errno, "sigaction SIGCHLD");
  return {};
}

}  // namespace

Errno SendToThread(pid_t tid, int signal) {
  return {::syscall(SYS_tkill, tid, signal) < 0 ? errno : 0};
}

bool ProcessExists(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

pid_t CurrentTid() {
  return static_cast<pid_t>(::syscall(SYS_gettid));
}

Status PrepareTracerThreadSignals() {
  struct sigaction action {};
  action.sa_sigaction = OnWake;
  action.sa_flags = SA_SIGINFO;
  if (::sigaction(kWakeSignal, &action, nullptr) != 0) return ErrnoError(errno, "sigaction");
  sigset_t blocked;
  ::sigfillset(&blocked);
  ::sigdelset(&blocked, kWakeSignal);
  if (int error = ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr); error != 0) {
    return ErrnoError(error, "pthread_sigmask");
  }
  return PrepareChildSignal();
}

}  // namespace probed::sys

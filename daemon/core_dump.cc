#include "daemon/core_dump.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace probed::daemon {
namespace {

// signal(7): those whose default action is to dump core.
constexpr int kSignals[] = {SIGABRT, SIGBUS, SIGFPE,  SIGILL,  SIGQUIT,
                            SIGSEGV, SIGSYS, SIGTRAP, SIGXCPU, SIGXFSZ};

void Die(int signal) {
  ::signal(signal, SIG_DFL);
  (void)::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
}

// Calls nothing that is not async-signal-safe. Nobody is to wait for the end of a socket because
// the copy has it, too.
void OnFatalSignal(int signal) {
  constexpr unsigned kFirst = 3;
  if (::_Fork() == 0) {
    ::close_range(kFirst, ~0u, 0);
  } else {
    ::prctl(PR_SET_DUMPABLE, 0);
  }
  Die(signal);
}

// Sanitizers have handlers of their own.
bool IsDefault(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_DFL;
}

}  // namespace

void LetACopyDumpCore() {
  struct sigaction action {};
  action.sa_handler = OnFatalSignal;
  action.sa_flags = SA_NODEFER;
  for (const int signal : kSignals) {
    if (IsDefault(signal)) ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace probed::daemon

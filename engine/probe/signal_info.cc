#include "engine/probe/signal_info.h"

namespace probed::probe {

// The kernel's own codes are positive; SI_KERNEL also stands for causes without a name.
bool IsFault(const siginfo_t& info) {
  switch (info.si_signo) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
      return info.si_code > 0;
    default:
      return false;
  }
}

bool NamesInstruction(const siginfo_t& info) {
  if (info.si_code <= 0 || info.si_code == SI_KERNEL) return false;
  return info.si_signo == SIGILL || info.si_signo == SIGFPE || info.si_signo == SIGTRAP;
}

bool IsMisaligned(const siginfo_t& info) {
  return info.si_signo == SIGBUS && info.si_code == BUS_ADRALN;
}

}  // namespace probed::probe

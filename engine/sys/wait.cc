#include "engine/sys/wait.h"

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cerrno>

namespace probed::sys {
namespace {

using Outcome = Waited::Outcome;

constexpr int kOurs = __WALL | __WNOTHREAD;

// waitpid's status, of a stop as waitid tells it: the signal with the event above it.
int StatusOfStop(const siginfo_t& info) {
  constexpr int kStopped = 0x7f;
  return info.si_status << 8 | kStopped;
}

bool IsStop(const siginfo_t& info) {
  return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED;
}

// No event (bits above 8) and no syscall-stop (bit 7).
bool IsSignalDelivery(const siginfo_t& info) {
  return IsStop(info) && (info.si_status & ~0x7f) == 0;
}

// Nothing: the thread has been killed since, and its death is not what was asked for.
bool TakeReported(const siginfo_t& info, int& status) {
  if (!IsStop(info)) return ::waitpid(info.si_pid, &status, kOurs | WNOHANG) > 0;
  siginfo_t taken{};
  int options = WSTOPPED | WNOHANG | kOurs;
  bool done = ::waitid(P_PID, static_cast<id_t>(info.si_pid), &taken, options) == 0;
  status = StatusOfStop(taken);
  return done && taken.si_pid != 0;
}

}  // namespace

Waited Wait(pid_t tid, WaitMode mode) {
  idtype_t whom = tid == kAnyThread ? P_ALL : P_PID;
  // Stops of tracees are reported without WSTOPPED too.
  int options = WEXITED | WNOWAIT | kOurs | (mode == WaitMode::kPoll ? WNOHANG : 0);
  while (true) {
    siginfo_t info{};
    if (::waitid(whom, static_cast<id_t>(tid), &info, options) != 0) {
      return {errno == EINTR ? Outcome::kInterrupted : Outcome::kNoTracees, 0, 0};
    }
    if (info.si_pid == 0) return {Outcome::kNothing, 0, 0};
    if (IsSignalDelivery(info)) return {Outcome::kStatus, info.si_pid, StatusOfStop(info)};
    int status = 0;
    if (TakeReported(info, status)) return {Outcome::kStatus, info.si_pid, status};
  }
}

void TakeStop(pid_t tid) {
  siginfo_t info{};
  (void)::waitid(P_PID, static_cast<id_t>(tid), &info, WSTOPPED | WNOHANG | kOurs);
}

}  // namespace probed::sys

#include "engine/probe/process_signal.h"

#include <sys/syscall.h>

#include <span>

#include "engine/sys/awaited_signal.h"
#include "engine/sys/ptrace.h"
#include "engine/tracee/process.h"
#include "engine/tracee/remote_call.h"

namespace probed::probe {
namespace {

constexpr uint64_t kRedZone = 128;

// Its own number may be another where it lives (pid_namespaces(7)).
Result<uint64_t> OwnPid(tracee::Stopped& stopped) {
  return tracee::RemoteSyscall(stopped, SYS_getpid, {});
}

bool Queue(tracee::Stopped& stopped, uint64_t pid, const siginfo_t& info) {
  siginfo_t saved{};
  static_assert(sizeof saved <= tracee::kRoomOnStack);
  const RemoteAddr place{stopped.regs().rsp - kRedZone - sizeof saved};
  auto before = std::as_writable_bytes(std::span(&saved, 1));
  if (!stopped.ReadMemory(place, before).ok()) return false;
  if (!stopped.WriteMemory(place, std::as_bytes(std::span(&info, 1))).ok()) return false;
  const auto signal = static_cast<uint64_t>(info.si_signo);
  auto called =
      tracee::RemoteSyscall(stopped, SYS_rt_sigqueueinfo, {pid, signal, place.value, 0, 0, 0});
  (void)stopped.WriteMemory(place, before);
  return called.ok();
}

// Only a process itself, by its first thread, may say that somebody has called kill(2)
// (kernel/signal.c, do_rt_sigqueueinfo).
bool SendToProcess(tracee::Stopped& stopped, siginfo_t info) {
  auto pid = OwnPid(stopped);
  if (!pid.ok()) return false;
  if (info.si_code == SI_USER && static_cast<uint64_t>(info.si_pid) == *pid) {
    const auto signal = static_cast<uint64_t>(info.si_signo);
    return tracee::RemoteSyscall(stopped, SYS_kill, {*pid, signal, 0, 0, 0, 0}).ok();
  }
  const bool is_first = stopped.tid() == stopped.process().pid();
  if (info.si_code == SI_USER && !is_first) info.si_code = SI_QUEUE;
  return Queue(stopped, *pid, info);
}

}  // namespace

void SendAgain(tracee::Stopped& stopped, const siginfo_t& info) {
  const siginfo_t sent = info;
  if (sent.si_code == SI_TKILL || !SendToProcess(stopped, sent)) stopped.DeferSignal(sent);
}

// Not all of them: calls with a timeout would begin it anew. A signalfd(2) is told in any case.
void LetOthersTake(tracee::Stopped& stopped, int signal) {
  if (!sys::HasPendingSignal(stopped.tid(), signal, sys::SignalQueue::kProcess)) return;
  for (pid_t tid : sys::ThreadsThatAwait(stopped.process().pid(), signal))
    stopped.process().Wake(tid);
}

}  // namespace probed::probe

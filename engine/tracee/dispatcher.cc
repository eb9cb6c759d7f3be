#include "engine/tracee/dispatcher.h"

#include <csignal>

#include "engine/sys/process_memory.h"
#include "engine/sys/ptrace.h"
#include "engine/tracee/callback.h"
#include "engine/tracee/remote_call.h"
#include "engine/tracee/syscall_restart.h"

namespace probed::tracee {

namespace {

bool IsToBeHeld(const Thread& thread) {
  return thread.park || thread.process().held();
}

// A thread whose process was detached ran into a breakpoint that has been taken out since: it shall
// run what stands there now. The program's own int3 still stands.
bool GoBackFromRemovedBreakpoint(pid_t tid) {
  constexpr std::byte kBreakpoint{0xcc};
  siginfo_t info{};
  user_regs_struct regs{};
  if (!sys::GetSigInfo(tid, info).ok() || info.si_code != SI_KERNEL) return false;
  if (!sys::GetRegs(tid, regs).ok()) return false;
  Result<sys::ProcessMemory> memory = sys::ProcessMemory::Open(tid);
  std::byte present{};
  if (!memory.ok() || !memory->Read(RemoteAddr{regs.rip - 1}, {&present, 1}).ok()) return false;
  if (present == kBreakpoint) return false;
  regs.rip -= 1;
  return sys::SetRegs(tid, regs).ok();
}

}  // namespace

void LeaveStop(Thread& thread) {
  if (thread.gone()) return;
  // A step under way must end first: the ip is in our copy of an instruction.
  if (!IsToBeHeld(thread) || thread.stepping()) return thread.Resume();
  // A signal is delivered first, as it could be lost or changed if other things were done in its
  // stop: the interrupt takes effect before its handler runs.
  if (thread.stop_kind() != StopKind::kSignal || thread.resumption().signal == 0) return;
  thread.Interrupt();
  thread.Resume();
}

void Dispatcher::Handle(const Stop& stop) {
  Thread* thread = registry_.FindThread(stop.tid);
  if (thread == nullptr) return HandleUnknown(stop);
  if (sys::IsDeath(stop.status)) return OnDeath(*thread, stop.status);
  if (thread->has_untaken_stop()) return thread->TakeStop();  // held, and reported once more
  std::visit(
      [&](const auto& decoded) {
        if constexpr (requires { On(*thread, decoded); }) On(*thread, decoded);
      },
      sys::DecodeWaitStatus(stop.status));
}

void Dispatcher::HandleUnknown(const Stop& stop) {
  bool is_leaving = registry_.TakeLeaving(stop.tid);
  if (sys::IsDeath(stop.status)) return;
  if (is_leaving) return LetGo(stop);
  // An exec renames its thread to the leader, which may have been dead when we attached.
  Process* process = registry_.FindProcess(stop.tid);
  bool is_exec = std::holds_alternative<sys::ExecStop>(sys::DecodeWaitStatus(stop.status));
  if (process == nullptr && is_exec) {
    uint64_t former_tid = 0;
    sys::GetEventMessage(stop.tid, former_tid).Ignore();
    if (registry_.TakeLeaving(static_cast<pid_t>(former_tid))) return LetGo(stop);
  }
  if (process != nullptr && is_exec) {
    return On(registry_.AddThread(*process, stop.tid, Thread::Role::kThread), sys::ExecStop{});
  }
  children_.KeepEarlyStop(stop);
}

// A thread that could not be stopped when its process was detached.
void Dispatcher::LetGo(const Stop& stop) {
  sys::WaitStatus status = sys::DecodeWaitStatus(stop.status);
  const auto* signal_stop = std::get_if<sys::SignalStop>(&status);
  int signal = signal_stop == nullptr ? 0 : signal_stop->signal;
  if (signal == SIGTRAP && GoBackFromRemovedBreakpoint(stop.tid)) signal = 0;
  sys::Detach(stop.tid, signal).Ignore();
}

// A signal must not wait: it would be lost if we died meanwhile. Others go on from where their
// registers are.
bool Dispatcher::WaitsForTurn(Thread& thread) {
  const bool delivers = thread.stop_kind() == StopKind::kSignal && thread.resumption().signal != 0;
  const bool may_wait = thread.stopped() && !thread.stepping() && !delivers;
  if (!turns_.in_round() || !may_wait || IsToBeHeld(thread)) return false;
  if (thread.has_untaken_stop()) thread.TakeStop();
  thread.awaits_turn = true;
  turns_.Wait(thread.tid());
  return true;
}

void Dispatcher::Leave(Thread& thread) {
  if (!WaitsForTurn(thread)) LeaveStop(thread);
}

void Dispatcher::On(Thread& thread, const sys::SignalStop& stop) {
  thread.EnterStop(StopKind::kSignal);
  if (stop.signal == SIGTRAP) {
    Callback callback(thread);
    Stopped token = thread.Token();
    thread.resumption() = observer_.OnTrap(token);
  } else {
    siginfo_t info = thread.SignalInfo();
    if (info.si_signo == 0) return;  // killed meanwhile: its death will be reported
    UndoInterruptionBySignal(thread, stop.signal);
    Callback callback(thread);
    Stopped token = thread.Token();
    thread.resumption() = observer_.OnSignal(token, info);
  }
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::InterruptStop&) {
  thread.EnterStop(StopKind::kInterrupt);
  if (thread.TakeInterrupted()) UndoInterruption(thread);
  if (IsToBeHeld(thread) && thread.ResumeToPendingTrap()) return;
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::GroupStop&) {
  thread.EnterStop(StopKind::kGroup);
  thread.TakeInterrupted();
  if (!IsToBeHeld(thread)) return thread.ListenInGroupStop();
  if (thread.ResumeToPendingTrap()) return;
  // A held thread finishes its step although its process is stopped: one instruction, unseen.
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::ChildStop& stop) {
  thread.EnterStop(StopKind::kEvent);
  uint64_t child = 0;
  if (sys::GetEventMessage(thread.tid(), child).ok()) {
    children_.Adopt(thread, static_cast<pid_t>(child), stop.kind);
  }
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::ExecStop&) {
  thread.EnterStop(StopKind::kEvent);
  thread.resumption() = {};
  thread.ForgetImage();
  if (!ReachUserBoundary(thread).ok()) return;
  if (thread.role() == Thread::Role::kMemorySharer) return children_.LeaveParent(thread);
  Process& process = thread.process();
  children_.EndOtherThreads(thread);
  if (!process.StartOver().ok()) return thread.Resume();
  {
    Callback callback(thread);
    Stopped token = thread.Token();
    thread.resumption() = observer_.OnExec(token);
  }
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::SyscallStop&) {
  thread.EnterStop(StopKind::kSyscall);
  bool is_exit = false;
  if (!sys::IsSyscallExit(thread.tid(), is_exit).ok()) return;
  {
    Callback callback(thread);
    Stopped token = thread.Token();
    thread.resumption() = observer_.OnSyscall(token, is_exit);
  }
  // Held before its call, the thread would make it at a moment when nobody looks: an exec, say.
  if (!is_exit && IsToBeHeld(thread)) {
    thread.Interrupt();
    return thread.Resume();
  }
  Leave(thread);
}

void Dispatcher::On(Thread& thread, const sys::OtherStop&) {
  thread.EnterStop(StopKind::kEvent);
  Leave(thread);
}

void Dispatcher::OnDeath(Thread& thread, int status) {
  Process& process = thread.process();
  thread.MarkGone();
  observer_.OnThreadExit(process, thread.tid());
  registry_.Remove(thread);
  if (!process.threads().empty()) return;
  children_.AdoptOrphansOf(process);
  observer_.OnExit(process, status);
  registry_.Remove(process);
}

}  // namespace probed::tracee

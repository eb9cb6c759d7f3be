#include "engine/tracee/remote_call.h"

#include <algorithm>
#include <optional>
#include <span>
#include <variant>

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/sys/wait_status.h"
#include "engine/tracee/process.h"
#include "engine/tracee/stop_source.h"
#include "engine/tracee/thread.h"

namespace probed::tracee {
namespace {

// mmap and munmap wait for nothing but the address space lock.
constexpr uint64_t kDeadlineNs = 10'000'000'000;

Error Gone(const Thread& thread) {
  return Error{.code = ErrorCode::kNotFound,
               .reason = "PROCESS_GONE",
               .message = "thread " + std::to_string(thread.tid()) + " died",
               .hint = "",
               .metadata = {}};
}

Error Late(const Thread& thread) {
  return Error{.code = ErrorCode::kDeadlineExceeded,
               .reason = "DEADLINE",
               .message = "thread " + std::to_string(thread.tid()) + " did not stop in time",
               .hint = "",
               .metadata = {}};
}

Error Replaced(const Thread& thread) {
  return Error{.code = ErrorCode::kAborted,
               .reason = "PROGRAM_REPLACED",
               .message = "process " + std::to_string(thread.process().pid()) +
                          " has executed a new program",
               .hint = "",
               .metadata = {}};
}

Error UnderSeccomp(const Process& process) {
  return Error{.code = ErrorCode::kFailedPrecondition,
               .reason = "SECCOMP_ACTIVE",
               .message = "process " + std::to_string(process.pid()) +
                          " is under seccomp: a system call of ours could kill it",
               .hint = "attach before the program installs its filter",
               .metadata = {{"pid", std::to_string(process.pid())}}};
}

// Nothing after the deadline, or when the thread has ended and that is not reported yet: of a
// leader it is not before all other threads have been waited for (kernel/exit.c,
// wait_consider_task), which is what we would come to when this wait is over.
std::optional<Stop> NextOf(const Thread& thread, bool& has_ended) {
  constexpr uint64_t kPatienceNs = 5'000'000;  // a stop comes within microseconds
  StopSource& stops = thread.process().stops();
  const uint64_t deadline_ns = MonotonicNow() + kDeadlineNs;
  while (MonotonicNow() < deadline_ns) {
    auto stop = stops.NextOf(thread.tid(), std::min(MonotonicNow() + kPatienceNs, deadline_ns));
    if (stop) return stop;
    auto status = sys::ReadTaskStatus(thread.tid());
    has_ended = !status.ok() || status->state == 'Z' || status->state == 'X';
    if (has_ended) return std::nullopt;
  }
  return std::nullopt;
}

// The next stop of a thread that has just been resumed. A death is left for the main loop, and so
// is an exec, of another thread perhaps: what we were about to do was meant for the old image.
Result<sys::WaitStatus> NextStop(Thread& thread) {
  StopSource& stops = thread.process().stops();
  bool has_ended = false;
  std::optional<Stop> stop = NextOf(thread, has_ended);
  if (has_ended) {
    thread.MarkGone();
    return Gone(thread);
  }
  if (!stop) return Late(thread);
  if (sys::IsDeath(stop->status)) {
    stops.PutBack(*stop);
    thread.MarkGone();
    return Gone(thread);
  }
  sys::WaitStatus status = sys::DecodeWaitStatus(stop->status);
  if (std::holds_alternative<sys::ExecStop>(status)) {
    stops.PutBack(*stop);
    thread.MarkGone();  // until that stop is dealt with
    return Replaced(thread);
  }
  return status;
}

// An int3 that is to be told to the program can be run into again, or what stands there now: sent
// again, it would be a signal that somebody has sent. "int 3" in two bytes raises the same signal.
bool GoBackToInt3(Thread& thread, const siginfo_t& info) {
  if (thread.in_callback || info.si_signo != SIGTRAP || info.si_code != SI_KERNEL) return false;
  constexpr std::array kTwoBytes = {std::byte{0xcd}, std::byte{0x03}};
  std::array<std::byte, 2> before{};
  uint64_t ip = thread.Regs().rip;
  (void)thread.process().memory().ReadSome(RemoteAddr{ip - before.size()}, before);
  if (before == kTwoBytes) return false;
  thread.MutableRegs().rip = ip - 1;
  return true;
}

// SIGSTOP alone can arrive with every signal blocked, and it has no siginfo worth keeping.
void DeferSignalStop(Thread& thread) {
  siginfo_t info{};
  if (!sys::GetSigInfo(thread.tid(), info).ok() || sys::IsHandlerNotice(info)) return;
  if (GoBackToInt3(thread, info)) return thread.FlushRegs();
  thread.DeferSignal(info);
}

// Lets the thread go on until it reports a stop of type Wanted, and enters that stop.
template <class Wanted>
Status RunTo(Thread& thread, StopKind kind, sys::Errno (*resume)(pid_t, int)) {
  constexpr int kMaxOtherStops = 64;
  for (int i = 0; i < kMaxOtherStops; ++i) {
    if (!resume(thread.tid(), 0).ok()) return Gone(thread);
    PROBED_TRY(sys::WaitStatus status, NextStop(thread));
    if (std::holds_alternative<Wanted>(status)) {
      thread.EnterStop(kind);
      return {};
    }
    bool in_group_stop = std::holds_alternative<sys::GroupStop>(status);
    thread.EnterStop(in_group_stop ? StopKind::kGroup : StopKind::kSignal);
    // A thread of a stopped process reports the group-stop where it would report the interrupt.
    if (in_group_stop && std::is_same_v<Wanted, sys::InterruptStop>) return {};
    if (std::holds_alternative<sys::SignalStop>(status)) DeferSignalStop(thread);
  }
  return Late(thread);
}

// A thread on its way into a call of ours and back, with signals blocked, so that none is
// taken from the program. Whatever happens to us, somebody knows what it had before.
class Excursion {
 public:
  Excursion(Thread& thread, const SyscallPlace& place)
      : thread_(thread), recorder_(thread.process().call_recorder()) {
    // A trap that has been dealt with would be delivered if we die, into the call.
    if (thread.has_untaken_stop()) thread.TakeStop();
    before_.pid = thread.process().pid();
    before_.start_ticks = thread.process().start_ticks();
    before_.tid = thread.tid();
    before_.place = place;
    before_.regs = thread.KernelsRegs();
    decided_ = thread.Regs();
    saved_mask_ = sys::GetSigMask(thread.tid(), before_.signal_mask).ok();
    if (recorder_ != nullptr && saved_mask_) recorder_->Begin(before_);
    if (saved_mask_) BlockSignals();
    if (place.can_park()) LeadToParking();
  }
  Excursion(const Excursion&) = delete;
  Excursion& operator=(const Excursion&) = delete;
  ~Excursion() {
    if (!thread_.gone()) ComeBack();
    if (recorder_ != nullptr && saved_mask_) recorder_->End();
  }

 private:
  // Below the red zone, where a signal would write too, and put back all the same: it may be the
  // end of a small stack.
  static constexpr uint64_t kBelow = 128 + kRoomOnStack + sizeof(uint64_t);

  // A trap that is pending belongs to the registers of before: taken out here, it could come back
  // only as one that somebody has sent.
  void BlockSignals() const {
    constexpr uint64_t kTrap = sys::SignalBit(SIGTRAP);
    bool keeps_trap =
        (before_.signal_mask & kTrap) != 0 || sys::HasPendingSignal(thread_.tid(), SIGTRAP);
    sys::SetSigMask(thread_.tid(), kMaskOfCalls | (keeps_trap ? kTrap : 0)).Ignore();
  }

  void LeadToParking() {
    RemoteAddr slot{(before_.regs.rsp - kBelow) & ~uint64_t{7}};
    const sys::ProcessMemory& memory = thread_.process().memory();
    auto covered = std::as_writable_bytes(std::span(&covered_, 1));
    if (memory.ReadSome(slot, covered) != covered.size()) return;
    auto parking = std::as_bytes(std::span(&before_.place.parking.value, 1));
    if (!memory.Write(slot, parking, thread_.tid()).ok()) return;
    slot_ = slot;
    thread_.MutableRegs().rsp = slot.value;
  }

  void ComeBack() {
    thread_.MutableRegs() = before_.regs;
    thread_.FlushRegs();
    thread_.MutableRegs() = decided_;
    auto covered = std::as_bytes(std::span(&covered_, 1));
    if (slot_.value != 0) (void)thread_.process().memory().Write(slot_, covered, thread_.tid());
    if (saved_mask_) sys::SetSigMask(thread_.tid(), before_.signal_mask).Ignore();
  }

  Thread& thread_;
  CallRecorder* const recorder_;
  CallUnderWay before_;
  user_regs_struct decided_{};  // in the middle of a callback not yet what the kernel has
  bool saved_mask_ = false;
  RemoteAddr slot_;
  uint64_t covered_ = 0;
};

// The signal of a signal-delivery-stop is lost when the stop is left without it.
void KeepSignal(Thread& thread) {
  int signal = thread.resumption().signal;
  if (thread.stop_kind() != StopKind::kSignal || (signal == 0 && !thread.in_callback)) return;
  siginfo_t info{};
  if (!sys::GetSigInfo(thread.tid(), info).ok() || sys::IsHandlerNotice(info)) return;
  if (GoBackToInt3(thread, info)) {
    thread.resumption().signal = 0;
    return;
  }
  thread.Displace(info);
}

void SetUpCall(Thread& thread, RemoteAddr instruction, long number,
               const std::array<uint64_t, 6>& arguments) {
  user_regs_struct& regs = thread.MutableRegs();
  regs.rip = instruction.value;
  regs.rax = static_cast<uint64_t>(number);
  regs.orig_rax = ~uint64_t{0};  // no system call to restart
  regs.rdi = arguments[0];
  regs.rsi = arguments[1];
  regs.rdx = arguments[2];
  regs.r10 = arguments[3];
  regs.r8 = arguments[4];
  regs.r9 = arguments[5];
  thread.FlushRegs();
}

// Syscall-stops are used, not a single step: a step ends in a forced SIGTRAP, which resets the
// program's handler if it has SIGTRAP blocked. The last stop is an interrupt again, because only on
// the way out of such a stop does the kernel restart a system call that the registers tell of.
Result<uint64_t> RunCall(Thread& thread) {
  using sys::ContinueToSyscall;
  PROBED_RETURN_IF_ERROR((RunTo<sys::SyscallStop>(thread, StopKind::kSyscall, ContinueToSyscall)));
  PROBED_RETURN_IF_ERROR((RunTo<sys::SyscallStop>(thread, StopKind::kSyscall, ContinueToSyscall)));
  uint64_t result = thread.Regs().rax;
  PROBED_RETURN_IF_ERROR(ReachUserBoundary(thread));
  return result;
}

}  // namespace

Status ReachUserBoundary(Thread& thread) {
  if (thread.stop_kind() != StopKind::kEvent && thread.stop_kind() != StopKind::kSyscall) return {};
  thread.FlushRegs();
  thread.Interrupt();
  PROBED_RETURN_IF_ERROR((RunTo<sys::InterruptStop>(thread, StopKind::kInterrupt, sys::Continue)));
  thread.TakeInterrupted();
  return {};
}

Status RunThroughSyscall(Stopped& stopped) {
  Thread& thread = stopped.thread();
  KeepSignal(thread);
  PROBED_RETURN_IF_ERROR(ReachUserBoundary(thread));
  thread.FlushRegs();
  auto result = RunCall(thread);
  return result.ok() ? Status() : std::move(result).error();
}

Result<uint64_t> RemoteSyscall(Stopped& stopped, long number,
                               const std::array<uint64_t, 6>& arguments) {
  Thread& thread = stopped.thread();
  Process& process = thread.process();
  if (process.CheckSeccomp(thread.tid())) return UnderSeccomp(process);
  PROBED_TRY(SyscallPlace place, process.FindSyscallPlace());
  KeepSignal(thread);
  PROBED_RETURN_IF_ERROR(ReachUserBoundary(thread));
  Result<uint64_t> result = [&] {
    Excursion excursion(thread, place);
    SetUpCall(thread, place.instruction, number, arguments);
    return RunCall(thread);
  }();
  if (!result.ok()) return result;
  constexpr uint64_t kMaxErrno = 4095;
  if (*result > ~kMaxErrno) {
    return ErrnoError(
        static_cast<int>(-static_cast<int64_t>(*result)),
        "system call " + std::to_string(number) + " in process " + std::to_string(process.pid()));
  }
  return result;
}

}  // namespace probed::tracee

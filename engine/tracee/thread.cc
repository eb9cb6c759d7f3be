#include "engine/tracee/thread.h"

#include <linux/rseq.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/clock.h"
#include "engine/sys/proc.h"
#include "engine/sys/ptrace.h"
#include "engine/sys/signal.h"
#include "engine/sys/wait.h"
#include "engine/tracee/seize.h"

namespace probed::tracee {
namespace {

constexpr size_t kCpuIdOffset = offsetof(rseq, cpu_id);
constexpr uint64_t kInt3Size = 1;
constexpr uint64_t kResumeFlag = 1 << 16;  // Intel SDM volume 3, 2.3

}  // namespace

Stopped Thread::Token() {
  assert(stopped());
  return Stopped(*this);
}

std::unique_ptr<Stopped> Thread::NewToken() {
  assert(stopped());
  return std::unique_ptr<Stopped>(new Stopped(*this));
}

void Thread::EnterStop(StopKind kind) {
  run_state_ = RunState::kStopped;
  stop_kind_ = kind;
  awaits_turn = false;
  regs_valid_ = false;
  regs_dirty_ = false;
  taken_ = false;
  telling_ip_ = 0;
  info_.reset();
  cpu_.reset();
  if (kind == StopKind::kGroup) group_stopped_ = true;
  if (kind == StopKind::kInterrupt) group_stopped_ = false;
  if (park && held_since_ns == 0) held_since_ns = MonotonicNow();
}

void Thread::TakeStop() {
  in_callback ? GoBackToTrap() : FlushRegs();
  taken_ = true;
  sys::TakeStop(tid_);
}

// Threads that it makes have its options from the kernel.
void Thread::AskForItsEnd() {
  if (std::exchange(tells_its_end_, true)) return;
  sys::SetOptions(tid_, TraceOptions() | PTRACE_O_TRACEEXIT).Ignore();
}

void Thread::Settle() {
  FlushRegs();
  if (has_untaken_stop() && resumption_.signal == 0) TakeStop();
}

// In the middle of dealing with a trap: with the signal gone, the thread would have to run into the
// int3 again. What is decided in the end is written to the registers afterwards.
void Thread::GoBackToTrap() {
  if (SignalInfo().si_signo != SIGTRAP || SignalInfo().si_code != SI_KERNEL) return;
  Regs();
  kernels_regs_.rip -= kInt3Size;
  kernels_regs_.eflags |= kResumeFlag;
  sys::SetRegs(tid_, kernels_regs_).Ignore();
  regs_dirty_ = true;
}

void Thread::Interrupt() {
  interrupted_ = true;
  sys::Interrupt(tid_).Ignore();
}

bool Thread::ResumeToPendingTrap() {
  // One that was sent and is blocked would not be delivered; a trap is never blocked.
  uint64_t mask = 0;
  bool is_blocked = sys::GetSigMask(tid_, mask).ok() && (mask & sys::SignalBit(SIGTRAP)) != 0;
  if (is_blocked || !sys::HasPendingSignal(tid_, SIGTRAP)) return false;
  FlushRegs();
  run_state_ = RunState::kRunning;
  sys::Continue(tid_, 0).Ignore();
  return true;
}

void Thread::ListenInGroupStop() {
  FlushRegs();
  CountHold();
  sys::Listen(tid_).Ignore();
  run_state_ = RunState::kListening;
}

void Thread::CountHold() {
  if (held_since_ns != 0) process_.CountStop(MonotonicNow() - std::exchange(held_since_ns, 0));
}

// A signal can be handed over only in a signal-delivery-stop (ptrace(2)). One that was taken in
// such a stop which has been left since is sent again, and gets its siginfo back when it arrives.
int Thread::SignalToDeliver() {
  int signal = std::exchange(resumption_.signal, 0);
  if (displaced_ && displaced_->si_signo == signal) DeferSignal(*displaced_);
  displaced_.reset();
  for (DeferredSignal& deferred : deferred_) {
    if (std::exchange(deferred.sent_again, true)) continue;
    sys::SendToThread(tid_, deferred.info.si_signo).Ignore();
  }
  return stop_kind_ == StopKind::kSignal ? signal : 0;
}

void Thread::Displace(const siginfo_t& info) {
  if (!displaced_) displaced_ = info;
}

void Thread::RestoreDeferred(siginfo_t& info) {
  if (deferred_.empty() || info.si_code != SI_TKILL || info.si_pid != ::getpid()) return;
  auto match = std::find_if(
      deferred_.begin(), deferred_.end(),
      [&](const DeferredSignal& deferred) { return deferred.info.si_signo == info.si_signo; });
  if (match == deferred_.end()) return;
  info = match->info;
  deferred_.erase(match);
  sys::SetSigInfo(tid_, info).Ignore();
}

const siginfo_t& Thread::SignalInfo() {
  if (!info_) {
    info_.emplace();
    if (!sys::GetSigInfo(tid_, *info_).ok()) *info_ = siginfo_t{};
    RestoreDeferred(*info_);
  }
  return *info_;
}

void Thread::Resume() {
  if (!stopped()) return;
  bool continues = resumption_.how == Resumption::How::kContinue;
  if (stop_kind_ == StopKind::kGroup && continues) return ListenInGroupStop();
  FlushRegs();
  CountHold();
  // A thread that had to run during a group-stop goes back into it: the interrupt makes it report
  // the group-stop again before it reaches user mode.
  if (group_stopped_ && continues) Interrupt();
  int signal = SignalToDeliver();
  run_state_ = RunState::kRunning;
  switch (resumption_.how) {
    case Resumption::How::kContinue:
      return sys::Continue(tid_, signal).Ignore();
    case Resumption::How::kStep:
      return sys::Step(tid_, signal).Ignore();
    case Resumption::How::kSyscall:
      return sys::ContinueToSyscall(tid_, signal).Ignore();
  }
}

void Thread::Detach() {
  FlushRegs();
  CountHold();
  sys::Detach(tid_, SignalToDeliver()).Ignore();
  run_state_ = RunState::kGone;
}

// Threads register while they start, and for good.
bool Thread::KnowsRseqArea() {
  if (rseq_.value == 0) sys::GetRseqArea(tid_, rseq_).Ignore();
  return rseq_.value != 0;
}

void Thread::NoteCpu(int32_t cpu) {
  if (cpu >= 0) cpu_ = static_cast<uint32_t>(cpu);
}

// The kernel keeps the number in the rseq area before each return to user mode, and a stopped
// thread does not return. The area is read along with the first memory that is asked for: a hit
// needs both, and a system call costs more than what it copies.
size_t Thread::ReadSome(RemoteAddr address, std::span<std::byte> out) {
  if (cpu_ || !KnowsRseqArea()) return process_.memory().ReadSome(address, out);
  int32_t cpu = RSEQ_CPU_ID_UNINITIALIZED;
  size_t count = process_.memory().ReadSomeWith(
      rseq_ + kCpuIdOffset, std::as_writable_bytes(std::span(&cpu, 1)), address, out);
  NoteCpu(cpu);
  return count;
}

uint32_t Thread::Cpu() {
  if (!cpu_) (void)ReadSome({}, {});
  if (!cpu_) {
    auto stat = sys::ReadTaskStat(tid_);
    NoteCpu(stat.ok() ? stat->cpu : 0);
  }
  return *cpu_;
}

const user_regs_struct& Thread::Regs() {
  if (!regs_valid_) {
    if (!sys::GetRegs(tid_, regs_).ok()) regs_ = user_regs_struct{};
    kernels_regs_ = regs_;
    regs_valid_ = true;
  }
  return regs_;
}

const user_regs_struct& Thread::KernelsRegs() {
  Regs();
  return kernels_regs_;
}

user_regs_struct& Thread::MutableRegs() {
  Regs();
  regs_dirty_ = true;
  return regs_;
}

// If the tracer dies between this and the resumption, a trap that has been dealt with is delivered
// nevertheless, and the handler that then gets it has to know (engine/detour/trap_handler.h). It is
// told by the resume flag, which a handler sees, an int3 clears, and nothing else takes notice of
// (it suppresses hardware breakpoints for one instruction).
bool Thread::MarksRegs() const {
  return has_untaken_stop() && resumption_.signal == 0;
}

// A hit changes the ip alone, mostly, and then to where the ip tells as much as the flag would.
void Thread::FlushRegs() {
  if (!std::exchange(regs_dirty_, false)) return;
  bool marks = MarksRegs() && regs_.rip != telling_ip_;
  user_regs_struct old = std::exchange(kernels_regs_, regs_);
  if (marks) kernels_regs_.eflags |= kResumeFlag;
  WriteRegs(old);
}

void Thread::WriteRegs(const user_regs_struct& old) {
  constexpr size_t kGeneral = offsetof(user_regs_struct, ss);
  user_regs_struct moved = old;
  moved.rip = kernels_regs_.rip;
  if (std::memcmp(&moved, &kernels_regs_, sizeof moved) == 0) {
    sys::SetIp(tid_, kernels_regs_.rip).Ignore();
  } else if (std::memcmp(&old.ss, &kernels_regs_.ss, sizeof old - kGeneral) == 0) {
    sys::SetGeneralRegs(tid_, kernels_regs_).Ignore();
  } else {
    sys::SetRegs(tid_, kernels_regs_).Ignore();
  }
}

}  // namespace probed::tracee

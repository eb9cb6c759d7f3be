#pragma once
// One traced thread: its stop, and how it goes on. Owned by its Process; tracer thread only.

#include <sys/types.h>
#include <sys/user.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "engine/tracee/process.h"
#include "engine/tracee/resumption.h"
#include "engine/tracee/stopped.h"

namespace probed::tracee {

// What kind of ptrace-stop a thread is in; each must be left in its own way.
enum class StopKind : uint8_t {
  kSignal,     // signal-delivery-stop, steps and int3 included
  kInterrupt,  // PTRACE_EVENT_STOP that is not a group-stop
  kGroup,      // group-stop
  kEvent,      // clone, fork, vfork, exec: inside the system call
  kSyscall,    // syscall-stop
};

class Thread {
 public:
  // A vfork child (or any clone that shares memory but is a process of its own) is a thread of the
  // process whose memory it runs in, until it execs or exits.
  enum class Role : uint8_t { kThread, kMemorySharer };

  Thread(Process& process, pid_t tid, Role role) : process_(process), tid_(tid), role_(role) {}

  pid_t tid() const { return tid_; }
  Process& process() const { return process_; }
  Role role() const { return role_; }
  Extension* extension() const { return extension_.get(); }
  void set_extension(std::unique_ptr<Extension> extension) { extension_ = std::move(extension); }

  // The rest is for the files of engine/tracee.

  bool stopped() const { return run_state_ == RunState::kStopped; }
  bool gone() const { return run_state_ == RunState::kGone; }
  // Asserts that the thread is stopped.
  Stopped Token();
  std::unique_ptr<Stopped> NewToken();
  StopKind stop_kind() const { return stop_kind_; }

  void EnterStop(StopKind kind);
  // A signal-delivery-stop goes on for a while: it is not reported any more. Until then, if the
  // tracer dies, the signal is delivered (sys/wait.h); from then on the thread goes on from where
  // its registers are, and that place is a sound one.
  bool has_untaken_stop() const { return stopped() && stop_kind_ == StopKind::kSignal && !taken_; }
  void TakeStop();
  void Settle();
  void AskForItsEnd();
  // Asks for a stop; it is reported as an InterruptStop or GroupStop unless another comes first.
  void Interrupt();
  // Whether the stop just entered is the answer to Interrupt() (asked once).
  bool TakeInterrupted() { return std::exchange(interrupted_, false); }
  // Leaves the stop as `resumption()` says. Registers are written back first.
  void Resume();
  // Goes on to the delivery of a trap that happened before this stop, if there is one: left
  // pending, it would kill the program once we are gone. No instruction runs meanwhile. False:
  // there is none.
  bool ResumeToPendingTrap();
  // Stays in its group-stop, with later stops reported.
  void ListenInGroupStop();
  // Leaves the stop and the tracer. A signal that was to be delivered is delivered.
  void Detach();
  // After an exec.
  void ForgetImage() { rseq_ = {}; }
  void MarkGone() { run_state_ = RunState::kGone; }

  Resumption& resumption() { return resumption_; }
  // Whether a step is under way that must end before the thread may be held.
  bool stepping() const { return resumption_.how == Resumption::How::kStep; }

  // A signal that was taken from the thread so that it could run something for us, to be given back
  // with its siginfo when it goes on.
  void DeferSignal(const siginfo_t& info) { deferred_.push_back({info, false}); }
  // The signal-delivery-stop of `info` is about to be left for our own ends; if that signal is to
  // be delivered in the end, it is deferred.
  void Displace(const siginfo_t& info);
  // Of a signal-delivery-stop; that of a deferred signal which has come back is the original's.
  const siginfo_t& SignalInfo();

  // Where it ran last, while it is stopped.
  uint32_t Cpu();
  size_t ReadSome(RemoteAddr address, std::span<std::byte> out);

  const user_regs_struct& Regs();
  user_regs_struct& MutableRegs();
  // What it would go on with if we died now.
  const user_regs_struct& KernelsRegs();
  void FlushRegs();
  // The ip is an address that tells by itself that a trap has been dealt with: see FlushRegs().
  void set_telling_ip(uint64_t ip) { telling_ip_ = ip; }

  // The thread must stay where it is at its next stop.
  bool park = false;
  // It goes on when a round of turns (turns.h) ends.
  bool awaits_turn = false;
  // An Observer callback for its current stop is on the stack.
  bool in_callback = false;
  // Whether the observer wants a memory sharer followed past its exec.
  bool follow_exec = false;
  // MonotonicNow() of the stop, 0 unless a hold by us is being timed.
  uint64_t held_since_ns = 0;

 private:
  enum class RunState : uint8_t { kRunning, kListening, kStopped, kGone };
  struct DeferredSignal {
    siginfo_t info;
    bool sent_again = false;
  };
  int SignalToDeliver();
  void RestoreDeferred(siginfo_t& info);
  bool KnowsRseqArea();
  void NoteCpu(int32_t cpu);
  void CountHold();
  void GoBackToTrap();
  bool MarksRegs() const;
  void WriteRegs(const user_regs_struct& old);

  Process& process_;
  const pid_t tid_;
  const Role role_;
  RunState run_state_ = RunState::kRunning;
  StopKind stop_kind_ = StopKind::kInterrupt;
  Resumption resumption_;
  // The process is stopped by job control, as far as this thread has been told.
  bool group_stopped_ = false;
  bool interrupted_ = false;
  bool taken_ = false;
  bool tells_its_end_ = false;
  bool regs_valid_ = false;
  bool regs_dirty_ = false;
  user_regs_struct regs_{};
  user_regs_struct kernels_regs_{};  // what the kernel has, while regs_valid_
  uint64_t telling_ip_ = 0;
  std::optional<siginfo_t> info_;  // of this stop, and its CPU, once asked for
  std::optional<uint32_t> cpu_;
  RemoteAddr rseq_;  // 0: not registered as far as we know
  std::optional<siginfo_t> displaced_;
  std::deque<DeferredSignal> deferred_;
  std::unique_ptr<Extension> extension_;
};

}  // namespace probed::tracee

#pragma once
// Proof that one thread is in a ptrace-stop of ours, and its registers for as long as it is.
// Only the tracer makes one. Everything that may run only on a stopped thread takes a Stopped&.
// Tracer thread only.

#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/result.h"

namespace probed::tracee {

class Process;
class Thread;

class Stopped {
 public:
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

  pid_t tid() const;
  Process& process() const;
  Thread& thread() const { return thread_; }

  // Read once per stop, on first use; written back once, before the thread is resumed, if
  // mutable_regs() was called. A thread that died meanwhile reads as zeros (ESRCH is normal).
  const user_regs_struct& regs();
  user_regs_struct& mutable_regs();
  // Writes them back at once: what is done next relies on it even if we die.
  void FlushRegs();
  // From here the thread goes on alone should we die: its registers are written back, and a signal
  // that has been dealt with is not delivered any more.
  void Settle();
  // Observer::OnThreadEnding() will be called for it.
  void AskForItsEnd();
  // Sets the ip to the start of a copy, which must tell by itself that the trap has been dealt with
  // (detour/trap_handler.h): cheaper than by mutable_regs(), where a flag has to tell.
  void GoToCopy(RemoteAddr copy);
  // x87/SSE/AVX/AVX-512 state in XSAVE layout (NT_X86_XSTATE); costs a system call.
  Result<std::vector<std::byte>> ReadExtendedState();
  Status WriteExtendedState(const std::vector<std::byte>& state);
  // Low 128 bits of %xmmN.
  bool ReadXmm(int number, std::array<uint8_t, 16>& out);

  // The CPU on which it ran into this stop.
  uint32_t cpu();
  // In a signal-delivery-stop: what the program's handler is told. Read once per stop, on first
  // use; of a thread that died meanwhile, zeros.
  const siginfo_t& signal_info();
  void SetSignalInfo(const siginfo_t& info);
  // Sends a signal that was not delivered again, as it was, once the thread runs.
  void DeferSignal(const siginfo_t& info);

  // The program's own mask, bit N-1 for signal N; nothing when the thread is dead.
  std::optional<uint64_t> ReadSignalMask();
  void WriteSignalMask(uint64_t mask);

  // Bytes read before the first unreadable one. The first read of a stop brings cpu() along.
  size_t ReadSome(RemoteAddr address, std::span<std::byte> out);
  Status ReadMemory(RemoteAddr address, std::span<std::byte> out);
  Status WriteMemory(RemoteAddr address, std::span<const std::byte> bytes);

 private:
  friend class Thread;
  explicit Stopped(Thread& thread) : thread_(thread) {}
  Thread& thread_;
};

}  // namespace probed::tracee

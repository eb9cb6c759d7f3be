#include "engine/sys/ptrace.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "engine/sys/interruptible_call.h"

namespace probed::sys {
namespace {

// glibc declares the request as an enum that lacks the newer requests.
Errno Request(int request, pid_t tid, uint64_t address, uint64_t data) {
  errno = 0;
  long result = ::ptrace(static_cast<__ptrace_request>(request), tid,
                         reinterpret_cast<void*>(address), reinterpret_cast<void*>(data));
  return {result < 0 ? errno : 0};
}

template <class T>
uint64_t AddressOf(T& object) {
  return reinterpret_cast<uint64_t>(&object);
}

}  // namespace

Errno Seize(pid_t tid, uint64_t options) {
  long result = InterruptibleCall(SYS_ptrace, PTRACE_SEIZE, tid, 0, static_cast<long>(options));
  return {result < 0 ? static_cast<int>(-result) : 0};
}
Errno SetOptions(pid_t tid, uint64_t options) {
  return Request(PTRACE_SETOPTIONS, tid, 0, options);
}
Errno Interrupt(pid_t tid) {
  return Request(PTRACE_INTERRUPT, tid, 0, 0);
}
// The kernel's own answer is that we are no tracee of ours.
bool IsPtraceFiltered() {
  return Request(PTRACE_CONT, ::getpid(), 0, 0).value != ESRCH;
}
Errno Listen(pid_t tid) {
  return Request(PTRACE_LISTEN, tid, 0, 0);
}

Errno Continue(pid_t tid, int signal) {
  return Request(PTRACE_CONT, tid, 0, static_cast<uint64_t>(signal));
}
Errno Step(pid_t tid, int signal) {
  return Request(PTRACE_SINGLESTEP, tid, 0, static_cast<uint64_t>(signal));
}
Errno ContinueToSyscall(pid_t tid, int signal) {
  return Request(PTRACE_SYSCALL, tid, 0, static_cast<uint64_t>(signal));
}
Errno Detach(pid_t tid, int signal) {
  return Request(PTRACE_DETACH, tid, 0, static_cast<uint64_t>(signal));
}

Errno GetRegs(pid_t tid, user_regs_struct& regs) {
  return Request(PTRACE_GETREGS, tid, 0, AddressOf(regs));
}
Errno SetRegs(pid_t tid, const user_regs_struct& regs) {
  return Request(PTRACE_SETREGS, tid, 0, AddressOf(regs));
}
Errno SetGeneralRegs(pid_t tid, const user_regs_struct& regs) {
  // The kernel takes as many as there are, from the first on.
  constexpr size_t kUpToSp = offsetof(user_regs_struct, rsp) + sizeof regs.rsp;
  iovec vector{.iov_base = const_cast<user_regs_struct*>(&regs), .iov_len = kUpToSp};
  return Request(PTRACE_SETREGSET, tid, NT_PRSTATUS, AddressOf(vector));
}
Errno SetIp(pid_t tid, uint64_t ip) {
  return Request(PTRACE_POKEUSER, tid, offsetof(user, regs.rip), ip);
}

Result<std::vector<std::byte>> GetXState(pid_t tid) {
  // The kernel tells the real size through iov_len; AMX tiles need 8 KiB, so 16 KiB is ample.
  std::vector<std::byte> state(16384);
  iovec vector{.iov_base = state.data(), .iov_len = state.size()};
  Errno error = Request(PTRACE_GETREGSET, tid, NT_X86_XSTATE, AddressOf(vector));
  if (!error.ok()) return ErrnoError(error.value, "ptrace GETREGSET NT_X86_XSTATE");
  state.resize(vector.iov_len);
  return state;
}

Status SetXState(pid_t tid, const std::vector<std::byte>& state) {
  iovec vector{.iov_base = const_cast<std::byte*>(state.data()), .iov_len = state.size()};
  Errno error = Request(PTRACE_SETREGSET, tid, NT_X86_XSTATE, AddressOf(vector));
  if (!error.ok()) return ErrnoError(error.value, "ptrace SETREGSET NT_X86_XSTATE");
  return {};
}

Errno GetSigInfo(pid_t tid, siginfo_t& info) {
  return Request(PTRACE_GETSIGINFO, tid, 0, AddressOf(info));
}
Errno SetSigInfo(pid_t tid, const siginfo_t& info) {
  return Request(PTRACE_SETSIGINFO, tid, 0, AddressOf(info));
}
Errno GetEventMessage(pid_t tid, uint64_t& message) {
  return Request(PTRACE_GETEVENTMSG, tid, 0, AddressOf(message));
}

bool HasPendingSignal(pid_t tid, int signal, SignalQueue which) {
  constexpr uint32_t kBatch = 16;
  const uint32_t flags = which == SignalQueue::kProcess ? PTRACE_PEEKSIGINFO_SHARED : 0;
  siginfo_t queue[kBatch];
  for (uint64_t offset = 0;; offset += kBatch) {
    __ptrace_peeksiginfo_args arguments{.off = offset, .flags = flags, .nr = kBatch};
    long count =
        ::ptrace(static_cast<__ptrace_request>(PTRACE_PEEKSIGINFO), tid, &arguments, queue);
    for (long i = 0; i < count; ++i) {
      if (queue[i].si_signo == signal) return true;
    }
    if (count < static_cast<long>(kBatch)) return false;
  }
}

Errno GetSigMask(pid_t tid, uint64_t& mask) {
  return Request(PTRACE_GETSIGMASK, tid, sizeof mask, AddressOf(mask));
}
Errno SetSigMask(pid_t tid, uint64_t mask) {
  return Request(PTRACE_SETSIGMASK, tid, sizeof mask, AddressOf(mask));
}

Errno GetRseqArea(pid_t tid, RemoteAddr& area) {
  __ptrace_rseq_configuration configuration{};
  Errno error =
      Request(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof configuration, AddressOf(configuration));
  if (error.ok()) area = RemoteAddr{configuration.rseq_abi_pointer};
  return error;
}

Errno IsSyscallExit(pid_t tid, bool& is_exit) {
  __ptrace_syscall_info info{};
  errno = 0;
  long size =
      ::ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), tid, sizeof info, &info);
  if (size < 0) return {errno};
  is_exit = info.op == PTRACE_SYSCALL_INFO_EXIT;
  return {};
}

Errno PokeText(pid_t tid, uint64_t address, uint64_t word) {
  return Request(PTRACE_POKETEXT, tid, address, word);
}

}  // namespace probed::sys

#include "engine/detour/trap_handler.h"

#include <sys/syscall.h>
#include <ucontext.h>

#include <array>
#include <csignal>
#include <cstddef>

#include "engine/detour/assembler.h"

namespace probed::detour {
namespace {

constexpr uint32_t Register(int index) {
  return offsetof(ucontext_t, uc_mcontext) + static_cast<uint32_t>(index) * sizeof(greg_t);
}
constexpr uint32_t kIp = Register(REG_RIP);
constexpr uint32_t kFlags = Register(REG_EFL);
constexpr uint32_t kResumeFlag = 1 << 16;
constexpr uint32_t kPageMask = 0xfff;

// The kernel restores every register from the frame, so all are free. rsi: siginfo, rdx: ucontext.
class Handler : public Xbyak::CodeGenerator {
 public:
  explicit Handler(std::array<uint8_t, 512>& buffer)
      : Xbyak::CodeGenerator(buffer.size(), buffer.data()) {}

  TrapHandlerCode Assemble(uint64_t id) {
    TrapHandlerCode made;
    dq(id);
    Xbyak::CodeGenerator::L(mark_);
    dq(kCopyMark);
    made.action = static_cast<uint32_t>(getSize());
    Xbyak::CodeGenerator::L(action_);
    for (uint32_t i = 0; i < kActionWords; ++i)
      dq(0);
    made.former = static_cast<uint32_t>(getSize());
    Xbyak::CodeGenerator::L(former_);
    dq(0);
    made.use = static_cast<uint32_t>(getSize());
    Xbyak::CodeGenerator::L(use_);
    dd(0);
    made.entry = static_cast<uint32_t>(getSize());
    Xbyak::CodeGenerator::L(entry_);
    LeaveOthers();
    OnTrap();
    OnSent();
    OnCall();
    made.restorer = static_cast<uint32_t>(getSize());
    mov(eax, SYS_rt_sigreturn);
    syscall();
    ready();
    made.code.assign(getCode(), getCode() + getSize());
    return made;
  }

 private:
  // The kernel puts the context right behind the return address (struct rt_sigframe). Whoever else
  // calls it is a handler that took us for the one that it has replaced.
  void LeaveOthers() {
    lea(rax, ptr[rsp + sizeof(uint64_t)]);
    cmp(rax, rdx);
    jne(called_, T_NEAR);
  }

  // A tail call of such a handler cannot be told by the stack. No register of the caller's changes.
  void LeaveUnlessInForce() {
    constexpr uint32_t kAction = kActionWords * sizeof(uint64_t);
    push(rsi);
    push(rdx);
    sub(rsp, kAction);
    mov(edi, SIGTRAP);
    xor_(esi, esi);
    mov(rdx, rsp);
    mov(r10d, sizeof(uint64_t));
    mov(eax, SYS_rt_sigaction);
    syscall();
    mov(rax, qword[rsp]);
    add(rsp, kAction);
    pop(rdx);
    pop(rsi);
    lea(rcx, ptr[rip + entry_]);
    cmp(rax, rcx);
    jne(called_, T_NEAR);
  }

  // As the handler before ours would have been called; one that ignored the signal, or the default
  // action, does nothing.
  void OnCall() {
    Xbyak::Label nothing;
    Xbyak::CodeGenerator::L(called_);
    mov(rax, qword[rip + former_]);
    cmp(rax, 1);  // SIG_IGN
    jbe(nothing);
    mov(edi, SIGTRAP);
    jmp(rax);
    Xbyak::CodeGenerator::L(nothing);
    ret();
  }

  void OnTrap() {
    constexpr auto kSiCode = offsetof(siginfo_t, si_code);
    Xbyak::Label in_force, done, back;
    cmp(dword[rip + use_], static_cast<uint32_t>(TrapHandlerUse::kMayBeCalled));
    ja(sent_, T_NEAR);
    cmp(dword[rsi + kSiCode], 0);
    jle(sent_, T_NEAR);
    cmp(dword[rip + use_], static_cast<uint32_t>(TrapHandlerUse::kInForce));
    je(in_force, T_NEAR);
    LeaveUnlessInForce();
    Xbyak::CodeGenerator::L(in_force);
    cmp(dword[rsi + kSiCode], SI_KERNEL);  // int3 alone has it (arch/x86 do_int3); a step is over
    jne(done);
    test(dword[rdx + kFlags], kResumeFlag);
    jnz(done);
    mov(rax, qword[rdx + kIp]);
    mov(ecx, eax);
    and_(ecx, kPageMask);
    cmp(ecx, sizeof(kCopyMark));  // the page before may not be readable, and has no copy
    jb(back);
    mov(rcx, qword[rip + mark_]);
    cmp(rcx, qword[rax - sizeof(kCopyMark)]);
    je(done);
    Xbyak::CodeGenerator::L(back);
    dec(rax);
    mov(qword[rdx + kIp], rax);
    Xbyak::CodeGenerator::L(done);
    ret();
  }

  // Pending again when the handler returns, with the program's action. A thread may send itself
  // what looks like the kernel's (rt_tgsigqueueinfo(2)).
  void OnSent() {
    Xbyak::CodeGenerator::L(sent_);
    LeaveUnlessInForce();
    mov(r12, rsi);
    mov(edi, SIGTRAP);
    lea(rsi, ptr[rip + action_]);
    xor_(edx, edx);
    mov(r10d, sizeof(uint64_t));
    mov(eax, SYS_rt_sigaction);
    syscall();
    mov(eax, SYS_getpid);
    syscall();
    mov(ebx, eax);
    mov(eax, SYS_gettid);
    syscall();
    mov(edi, ebx);
    mov(esi, eax);
    mov(edx, SIGTRAP);
    mov(r10, r12);
    mov(eax, SYS_rt_tgsigqueueinfo);
    syscall();
    ret();
  }

  Xbyak::Label mark_, action_, former_, use_, entry_, sent_, called_;
};

}  // namespace

TrapHandlerCode AssembleTrapHandler(uint64_t id) {
  std::array<uint8_t, 512> buffer{};
  return Handler(buffer).Assemble(id);
}

}  // namespace probed::detour

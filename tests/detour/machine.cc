#include "tests/detour/machine.h"

extern "C" {
void detour_test_run(probed::detour::testing::Registers*, uint64_t code);
}

// Offsets are those of Registers: ax bx cx dx si di bp sp r8..r15 flags.
asm(R"(
  .text
  .globl detour_test_run
detour_test_run:
  push %rbx
  push %rbp
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, detour_test_stack(%rip)
  mov %rdi, detour_test_state(%rip)
  mov %rsi, detour_test_code(%rip)
  mov 56(%rdi), %rsp
  mov 128(%rdi), %rax
  push %rax
  popfq
  lea detour_test_back(%rip), %rax
  mov %rax, -8(%rsp)
  lea -8(%rsp), %rsp
  mov 0(%rdi), %rax
  mov 8(%rdi), %rbx
  mov 16(%rdi), %rcx
  mov 24(%rdi), %rdx
  mov 32(%rdi), %rsi
  mov 48(%rdi), %rbp
  mov 64(%rdi), %r8
  mov 72(%rdi), %r9
  mov 80(%rdi), %r10
  mov 88(%rdi), %r11
  mov 96(%rdi), %r12
  mov 104(%rdi), %r13
  mov 112(%rdi), %r14
  mov 120(%rdi), %r15
  mov 40(%rdi), %rdi
  jmp *detour_test_code(%rip)
detour_test_back:
  mov %rdi, detour_test_rdi(%rip)
  mov detour_test_state(%rip), %rdi
  mov %rax, 0(%rdi)
  mov %rbx, 8(%rdi)
  mov %rcx, 16(%rdi)
  mov %rdx, 24(%rdi)
  mov %rsi, 32(%rdi)
  mov %rbp, 48(%rdi)
  mov %rsp, 56(%rdi)
  mov %r8, 64(%rdi)
  mov %r9, 72(%rdi)
  mov %r10, 80(%rdi)
  mov %r11, 88(%rdi)
  mov %r12, 96(%rdi)
  mov %r13, 104(%rdi)
  mov %r14, 112(%rdi)
  mov %r15, 120(%rdi)
  mov detour_test_rdi(%rip), %rax
  mov %rax, 40(%rdi)
  mov detour_test_stack(%rip), %rsp
  pushfq
  pop %rax
  mov %rax, 128(%rdi)
  pushq $0x202
  popfq
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbp
  pop %rbx
  ret
  .local detour_test_stack
  .comm detour_test_stack, 8, 8
  .local detour_test_state
  .comm detour_test_state, 8, 8
  .local detour_test_code
  .comm detour_test_code, 8, 8
  .local detour_test_rdi
  .comm detour_test_rdi, 8, 8
)");

namespace probed::detour::testing {

void RunAt(Registers& registers, uint64_t code) {
  detour_test_run(&registers, code);
}

}  // namespace probed::detour::testing

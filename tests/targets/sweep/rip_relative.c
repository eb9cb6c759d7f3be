// RIP-relative operands of many encodings: loads, stores, immediates after the displacement,
// read-modify-write, SSE/AVX, push/call/jmp through memory, cmpxchg, fixed registers.
#include "sweep.h"

__attribute__((used)) static uint64_t sw_cell = 0x1111;
__attribute__((used)) static uint32_t sw_narrow = 77;
__attribute__((used, aligned(32))) static double sw_vector[4] = {1.5, 2.5, 3.5, 4.5};
__attribute__((used)) static void (*sw_pointer)(void);
__attribute__((used)) static void* sw_landing;

SWEPT void sw_callee(void) { sw_narrow += 3; }

SWEPT uint64_t sw_rip_integers(uint64_t seed) {
  uint64_t result = seed;
  __asm__ volatile(
      "  add sw_cell(%%rip), %0\n"
      "  mov %0, sw_cell(%%rip)\n"
      "  addq $0x12345, sw_cell(%%rip)\n"
      "  movl $9, sw_narrow(%%rip)\n"
      "  incl sw_narrow(%%rip)\n"
      "  imul $1000, sw_cell(%%rip), %%rax\n"
      "  xor %%rax, %0\n"
      "  movzbl sw_cell+1(%%rip), %%esi\n"
      "  add %%rsi, %0\n"
      "  movslq sw_narrow(%%rip), %%rdi\n"
      "  sub %%rdi, %0\n"
      "  mov sw_cell(%%rip), %%rax\n"
      "  lock cmpxchg %%rdi, sw_cell(%%rip)\n"
      "  sete %%al\n"
      "  movzbl %%al, %%eax\n"
      "  add %%rax, %0\n"
      "  movl $400, %%eax\n"
      "  xor %%edx, %%edx\n"
      "  divl sw_narrow(%%rip)\n"
      "  add %%rax, %0\n"
      "  mull sw_narrow(%%rip)\n"
      "  add %%rax, %0\n"
      "  mov $3, %%ecx\n"
      "  shll %%cl, sw_narrow(%%rip)\n"
      "  bts %%ecx, sw_narrow(%%rip)\n"
      "  cmpl $80, sw_narrow(%%rip)\n"
      "  cmove sw_cell(%%rip), %%rbx\n"
      "  cmovne sw_cell(%%rip), %%r9\n"
      "  lea sw_cell(%%rip), %%r11\n"
      "  add (%%r11), %0\n"
      "  mov %0, %%r12\n"
      "  xchg sw_cell(%%rip), %%r12\n"
      "  mov %%r12, %%rsi\n"
      "  add %%rsi, %0\n"
      : "+&r"(result)::"rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r9", "r11", "r12", "cc",
        "memory");
  return result;
}

SWEPT uint64_t sw_rip_vectors(void) {
  double out;
  __asm__ volatile(
      "  movsd sw_vector(%%rip), %%xmm3\n"
      "  mulsd sw_vector+8(%%rip), %%xmm3\n"
      "  addpd sw_vector(%%rip), %%xmm3\n"
      "  ucomisd sw_vector+16(%%rip), %%xmm3\n"
      "  movsd %%xmm3, sw_vector+24(%%rip)\n"
      "  shufpd $1, sw_vector(%%rip), %%xmm3\n"
      "  cvtsi2sdl sw_narrow(%%rip), %%xmm4\n"
      "  addsd %%xmm4, %%xmm3\n"
      "  fldl sw_vector+24(%%rip)\n"
      "  fstpl sw_vector+24(%%rip)\n"
      "  addsd sw_vector+24(%%rip), %%xmm3\n"
      "  movapd %%xmm3, %0\n"
      : "=x"(out)::"xmm3", "xmm4", "cc", "memory");
  return (uint64_t)(out * 1000);
}

SWEPT uint64_t sw_rip_branches(void) {
  uint64_t result = 1;
  sw_pointer = sw_callee;
  __asm__ volatile(
      "  sub $128, %%rsp\n"  // out of the red zone
      "  pushq sw_cell(%%rip)\n"
      "  addq $4, (%%rsp)\n"
      "  popq sw_cell(%%rip)\n"
      "  call *sw_pointer(%%rip)\n"
      "  lea 1f(%%rip), %%rax\n"
      "  mov %%rax, sw_landing(%%rip)\n"
      "  jmp *sw_landing(%%rip)\n"
      "  ud2\n"
      "1: shl $5, %0\n"
      "  sub $-128, %%rsp\n"
      : "+&b"(result)::"rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc",
        "memory");
  return result * 1000 + sw_narrow + sw_cell;
}

SWEPT uint64_t sw_check_rip_relative(void) {
  uint64_t hash = sw_rip_integers(0x9999);
  hash = hash * 31 + sw_rip_vectors();
  return hash * 31 + sw_rip_branches();
}

// Instruction forms that compilers seldom write: loop, jrcxz, enter/leave, flags, segment reads,
// lock prefixes, short and far-reaching branches, call/ret with immediates, x87, syscall.
#include <sys/syscall.h>
#include <unistd.h>

#include "sweep.h"

SWEPT uint64_t sw_loop_family(uint64_t seed) {
  uint64_t result = seed;
  __asm__ volatile(
      "  mov $5, %%ecx\n"
      "1: lea 3(%0,%0,2), %0\n"
      "  loop 1b\n"
      "  mov $4, %%ecx\n"
      "2: add $9, %0\n"
      "  cmp $0, %0\n"
      "  loopne 2b\n"
      "  xor %%ecx, %%ecx\n"
      "  jrcxz 3f\n"
      "  add $1000, %0\n"
      "3: mov $2, %%ecx\n"
      "  jrcxz 3b\n"
      "  jecxz 3b\n"
      "  inc %0\n"
      : "+r"(result)::"rcx", "cc");
  return result;
}

SWEPT uint64_t sw_flags(uint64_t a, uint64_t b) {
  uint64_t result = 0, saved;
  __asm__ volatile(
      "  add %2, %3\n"
      "  adc $0, %0\n"
      "  lea -128(%%rsp), %%rsp\n"
      "  pushfq\n"
      "  movzbl 1(%%rsp), %%eax\n"
      "  and $1, %%eax\n"  // a tracer's trap flag must not show here
      "  lea (%0,%%rax,8), %0\n"
      "  xor %%eax, %%eax\n"
      "  popfq\n"
      "  lea 128(%%rsp), %%rsp\n"
      "  setp %%al\n"
      "  add %%rax, %0\n"
      "  stc\n"
      "  rcl $1, %0\n"
      "  cmc\n"
      "  sbb %3, %0\n"
      "  std\n"
      "  cld\n"
      "  lahf\n"
      "  sahf\n"
      "  cmovc %3, %0\n"
      "  bt $3, %3\n"
      "  setc %%al\n"
      "  movzbl %%al, %%eax\n"
      "  xor %%rax, %0\n"
      : "+&r"(result), "=&a"(saved), "+&r"(a), "+&r"(b)::"cc", "memory");
  return result + b;
}

SWEPT uint64_t sw_stack_forms(uint64_t value) {
  uint64_t result;
  __asm__ volatile(
      "  sub $128, %%rsp\n"  // out of the red zone
      "  push %1\n"
      "  pushq $0x1234\n"
      "  pushq $-5\n"
      "  push %%rsp\n"
      "  pop %%rax\n"
      "  sub %%rsp, %%rax\n"
      "  add (%%rsp), %%rax\n"
      "  add 8(%%rsp), %%rax\n"
      "  pushq 16(%%rsp)\n"
      "  popq %%rdx\n"
      "  xor %%rdx, %%rax\n"
      "  push %%r12\n"
      "  mov %%rax, %%r12\n"
      "  enter $16, $0\n"
      "  mov %%r12, -8(%%rbp)\n"
      "  mov -8(%%rbp), %%rax\n"
      "  leave\n"
      "  pop %%r12\n"
      "  add $24, %%rsp\n"
      "  sub $-128, %%rsp\n"
      : "=&a"(result)
      : "r"(value)
      : "rdx", "cc", "memory");
  return result;
}

SWEPT uint64_t sw_call_forms(uint64_t value) {
  uint64_t result = value;
  __asm__ volatile(
      "  sub $128, %%rsp\n"
      "  call 1f\n"
      "  jmp 4f\n"
      "1: lea 2f(%%rip), %%rax\n"
      "  push $77\n"
      "  call *%%rax\n"
      "  add $5, %0\n"
      "  lea 3f(%%rip), %%rax\n"
      "  push %%rax\n"
      "  ret\n"
      "2: add 8(%%rsp), %0\n"
      "  ret $8\n"
      "3: lea 5f(%%rip), %%rax\n"
      "  push %%rax\n"
      "  call *(%%rsp)\n"
      "  pop %%rax\n"
      "  repz ret\n"
      "5: xor $0x33, %0\n"
      "  .byte 0xf2, 0xc3\n"  // bnd ret
      "4: sub $-128, %%rsp\n"
      : "+&r"(result)::"rax", "cc", "memory");
  return result;
}

SWEPT uint64_t sw_data_forms(uint64_t value) {
  uint64_t result = value;
  __asm__ volatile(
      "  bswap %0\n"
      "  xchg %%al, %%ah\n"
      "  ror $9, %0\n"
      "  mov %0, %%rdx\n"
      "  shld $5, %%rdx, %0\n"
      "  imul $0x1003, %0, %0\n"
      "  mov %0, %%rax\n"
      "  mov $97, %%ecx\n"
      "  xor %%edx, %%edx\n"
      "  div %%rcx\n"
      "  cqto\n"
      "  movsbl %%al, %%eax\n"
      "  cltq\n"
      "  xor %%rax, %0\n"
      "  mov %%fs:0, %%rax\n"
      "  sub %%fs:0, %%rax\n"
      "  add %%rax, %0\n"
      "  prefetcht0 (%%rsp)\n"
      "  .byte 0x66, 0x90\n"
      "  .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
      "  .byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00\n"
      "  pause\n"
      "  lfence\n"
      "  .byte 0xf3, 0x0f, 0x1e, 0xfa\n"  // endbr64
      "  addr32 lea 4(%%eax), %%eax\n"
      "  movabs $0x1122334455667788, %%rdx\n"
      "  xor %%rdx, %0\n"
      : "+&r"(result)::"rax", "rcx", "rdx", "cc", "memory");
  return result;
}

SWEPT uint64_t sw_check_forms(void) {
  uint64_t hash = sw_loop_family(3);
  hash = hash * 31 + sw_flags(~0ull, 0x1238);
  hash = hash * 31 + sw_stack_forms(0x4444);
  hash = hash * 31 + sw_call_forms(0x600);
  return hash * 31 + sw_data_forms(0x0123456789abcdef);
}

SWEPT uint64_t sw_check_atomics(void) {
  static volatile uint64_t cell;
  cell = 5;
  uint64_t old = 3;
  __asm__ volatile("lock xadd %0, %1" : "+r"(old), "+m"(cell)::"cc");
  __asm__ volatile("lock incl %0" : "+m"(cell)::"cc");
  __asm__ volatile("lock btsq $20, %0" : "+m"(cell)::"cc");
  uint64_t expected = cell, desired = 1000;
  __asm__ volatile("lock cmpxchg %2, %1" : "+a"(expected), "+m"(cell) : "r"(desired) : "cc");
  __asm__ volatile("xchg %0, %1" : "+r"(desired), "+m"(cell));
  return old * 1000000000 + cell * 10000000 + expected + desired;
}

SWEPT uint64_t sw_check_system_call(void) {
  long pid;
  __asm__ volatile("syscall" : "=a"(pid) : "0"(SYS_getpid) : "rcx", "r11", "memory");
  long bad = SYS_close;
  __asm__ volatile("syscall" : "+a"(bad) : "D"(-1) : "rcx", "r11", "memory");
  return (uint64_t)(pid == getpid()) * 100 + (uint64_t)-bad;
}

SWEPT uint64_t sw_check_x87(void) {
  volatile long double value = 2.0L;
  long double root, sum;
  __asm__ volatile("fsqrt" : "=t"(root) : "0"(value));
  __asm__ volatile("fld1\n\tfaddp" : "=t"(sum) : "0"(root));
  short control;
  __asm__ volatile("fnstcw %0" : "=m"(control));
  return (uint64_t)(sum * 1e15L) + (uint64_t)(control & 0x300);
}

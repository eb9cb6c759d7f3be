// Leaf code that keeps its values below the stack pointer, all 128 bytes of the red zone.
#include "sweep.h"

// Written in assembly so that every build keeps its locals there, -O0 and clang included.
SWEPT uint64_t sw_red_zone_fill(uint64_t seed);
__asm__(
    ".text\n"
    ".globl sw_red_zone_fill\n"
    ".type sw_red_zone_fill, @function\n"
    "sw_red_zone_fill:\n"
    "  mov $16, %ecx\n"
    "1: mov %rdi, %rax\n"
    "  mov %rcx, %rdx\n"
    "  shl $3, %rdx\n"
    "  neg %rdx\n"
    "  mov %rax, (%rsp,%rdx)\n"
    "  imul $0x5deece66, %rdi, %rdi\n"
    "  lea 11(%rdi), %rdi\n"
    "  dec %ecx\n"
    "  jnz 1b\n"
    "  xor %eax, %eax\n"
    "  nop\n"
    "  xor -8(%rsp), %rax\n"
    "  rol $7, %rax\n"
    "  add -64(%rsp), %rax\n"
    "  jmp 2f\n"
    "  ud2\n"
    "2: xor -120(%rsp), %rax\n"
    "  sub -128(%rsp), %rax\n"
    "  bswap %rax\n"
    "  xor -32(%rsp), %rax\n"
    "  ret\n"
    ".size sw_red_zone_fill, . - sw_red_zone_fill\n");

SWEPT int sw_leaf(int a, int b, int c) {
  volatile int locals[12];
  for (int i = 0; i < 12; ++i) locals[i] = a * i + b;
  int sum = c;
  for (int i = 0; i < 12; ++i) sum = sum * 5 + locals[11 - i];
  return sum;
}

SWEPT uint64_t sw_check_red_zone(void) {
  uint64_t hash = 0;
  for (int i = 1; i < 6; ++i) {
    hash = hash * 3 + sw_red_zone_fill((uint64_t)i * 0x123456789abcdu);
    hash ^= (uint64_t)(uint32_t)sw_leaf(i, i + 2, 1) << 16;
  }
  return hash;
}

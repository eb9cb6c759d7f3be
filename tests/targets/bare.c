// No C library and no thread pointer: fs is 0 for as long as it runs, as it is in every statically
// linked program before its start has set it. Each byte of its input is answered by a line when
// 100 calls are made.
#include <sys/syscall.h>

static long Call(long number, long first, const void* second, long third) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((noipa)) long work(long n) {
  __asm__ volatile("" ::: "memory");
  return 3 * n + 1;
}

__attribute__((noipa, used)) static void Main(void) {
  char order;
  long wrong = 0;
  while (Call(SYS_read, 0, &order, 1) == 1) {
    for (long i = 0; i < 100; ++i) wrong += work(i) != 3 * i + 1;
    Call(SYS_write, 1, wrong == 0 ? "right\n" : "wrong\n", 6);
  }
  Call(SYS_exit_group, wrong != 0, 0, 0);
}

__attribute__((naked)) void _start(void) {
  __asm__("and $-16, %rsp\n\tcall Main\n\thlt");
}

// Frames that never return: longjmp over several of them, siglongjmp out of a signal handler, and
// recursion deeper than the kernel's 64 pending returns. unwind ROUNDS [wait]
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

#include "gate.h"

static jmp_buf escape;
static sigjmp_buf signal_escape;
static unsigned long entries, returns;

__attribute__((noipa)) void dive(int depth) {
  ++entries;
  if (depth == 0) longjmp(escape, 1);
  dive(depth - 1);
  ++returns;
}
__attribute__((noipa)) long recurse(int depth) {
  if (depth == 0) return 0;
  long below = recurse(depth - 1);
  __asm__ volatile("" ::: "memory");
  return below + depth;
}
__attribute__((noipa)) void interrupted(void) {
  ++entries;
  raise(SIGUSR1);
  ++returns;
}
static void OnSignal(int number) {
  (void)number;
  siglongjmp(signal_escape, 1);
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 10;
  signal(SIGUSR1, OnSignal);
  WaitIfTold(argc, argv);
  long sum = 0;
  for (volatile int i = 0; i < rounds; ++i) {
    if (setjmp(escape) == 0) dive(i % 5);
    if (sigsetjmp(signal_escape, 1) == 0) interrupted();
    sum += recurse(200);
  }
  printf("entries %lu returns %lu sum %s\n", entries, returns,
         sum == rounds * 20100L ? "ok" : "WRONG");
  return 0;
}

// Dies below some calls: dumps abort|segv|trap [wait]
#include <stdlib.h>

#include "gate.h"

static volatile int* volatile nowhere;

__attribute__((noipa)) long descend(long depth, char how) {
  if (depth == 0 && how == 'a') abort();
  if (depth == 0 && how == 't') __asm__ volatile("int3");
  if (depth == 0) return *nowhere;
  long below = descend(depth - 1, how);
  __asm__ volatile("" ::: "memory");
  return below + 1;
}

int main(int argc, char** argv) {
  WaitIfTold(argc, argv);
  return (int)descend(8, argc > 1 ? argv[1][0] : 's');
}

// Many threads on one function, counted by the program itself. threads THREADS CALLS [wait|until]
// With "until" they go on until a line comes, after "ready" was said.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gate.h"

static atomic_ulong calls;
static atomic_ulong wrong;
static atomic_int ended;
static unsigned long calls_each;

__attribute__((noinline)) unsigned long step(unsigned long n) {
  __asm__ volatile("" ::: "memory");
  atomic_fetch_add(&calls, 1);
  return n * 3 + 1;
}

static void* Work(void* argument) {
  unsigned long first = (unsigned long)argument, sum = 0, i = 0;
  for (; i < calls_each && !ended; ++i) sum += step(i + first);
  unsigned long expected = i == 0 ? 0 : 3 * (i * (i - 1) / 2) + 3 * i * first + i;
  atomic_fetch_add(&wrong, sum != expected);
  return NULL;
}

int main(int argc, char** argv) {
  unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 32;
  calls_each = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
  int until = argc > 3 && strcmp(argv[3], "until") == 0;
  pthread_t* threads = calloc(count, sizeof *threads);
  WaitIfTold(argc, argv);
  if (until) calls_each = ~0ul;
  for (unsigned long i = 0; i < count; ++i) pthread_create(&threads[i], NULL, Work, (void*)i);
  if (until) {
    puts("ready");
    fflush(stdout);
    getchar();
    ended = 1;
  }
  for (unsigned long i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  printf("calls %lu sum %s\n", calls, wrong == 0 ? "ok" : "WRONG");
  return wrong != 0;
}

// Many threads on one function, counted by the program itself. threads THREADS CALLS [wait]
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gate.h"

static atomic_ulong calls;
static atomic_ulong sum;
static unsigned long calls_each;

__attribute__((noinline)) unsigned long step(unsigned long n) {
  __asm__ volatile("" ::: "memory");
  atomic_fetch_add(&calls, 1);
  return n * 3 + 1;
}

static void* Work(void* argument) {
  unsigned long local = 0;
  for (unsigned long i = 0; i < calls_each; ++i) local += step(i + (unsigned long)argument);
  atomic_fetch_add(&sum, local);
  return NULL;
}

int main(int argc, char** argv) {
  unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 32;
  calls_each = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
  pthread_t* threads = calloc(count, sizeof *threads);
  WaitIfTold(argc, argv);
  for (unsigned long i = 0; i < count; ++i) pthread_create(&threads[i], NULL, Work, (void*)i);
  for (unsigned long i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  unsigned long expected = count * 3 * (calls_each * (calls_each - 1) / 2) + count * calls_each +
                           3 * calls_each * (count * (count - 1) / 2);
  printf("calls %lu sum %s\n", calls, sum == expected ? "ok" : "WRONG");
  return sum != expected;
}

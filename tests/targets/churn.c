// Short-lived threads, each of which calls step() exactly once. churn THREADS [wait]
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "gate.h"

static atomic_ulong calls;

__attribute__((noinline)) void step(void) { atomic_fetch_add(&calls, 1); }

static void* Once(void* unused) {
  (void)unused;
  step();
  return NULL;
}

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 100;
  WaitIfTold(argc, argv);
  for (int done = 0; done < count; done += 4) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, Once, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  }
  printf("calls %lu\n", calls);
  return 0;
}

// Threads that make threads, each of which calls born() and dies() once and ends. Runs until
// "rest", when the last have ended, prints how many there were up to now, and how many calls went
// wrong; goes on with "go". usage: mayflies [MAKERS]
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMostMakers = 500, kAtOnce = 4 };

static atomic_ulong lives, wrong;
static atomic_int resting;

__attribute__((noinline)) unsigned long born(unsigned long number) {
  __asm__ volatile("" ::: "memory");
  return number * 3 + 1;
}

__attribute__((noinline)) unsigned long dies(unsigned long number) {
  __asm__ volatile("" ::: "memory");
  return number ^ 5;
}

static void* live(void* unused) {
  (void)unused;
  unsigned long number = atomic_fetch_add(&lives, 1);
  if (born(number) != number * 3 + 1) atomic_fetch_add(&wrong, 1);
  if (dies(number) != (number ^ 5)) atomic_fetch_add(&wrong, 1);
  return NULL;
}

static void* make(void* unused) {
  (void)unused;
  while (!resting) {
    pthread_t threads[kAtOnce];
    int made = 0;
    while (made < kAtOnce && pthread_create(&threads[made], NULL, live, NULL) == 0)
      ++made;
    for (int i = 0; i < made; ++i)
      pthread_join(threads[i], NULL);
  }
  return NULL;
}

int main(int argc, char** argv) {
  char line[64];
  const int count = argc > 1 ? atoi(argv[1]) : 8;
  if (count > kMostMakers) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    pthread_t makers[kMostMakers];
    resting = 0;
    for (int i = 0; i < count; ++i)
      if (pthread_create(&makers[i], NULL, make, NULL) != 0) return 2;
    printf("going\n");
    if (!fgets(line, sizeof line, stdin)) return 1;
    resting = 1;
    for (int i = 0; i < count; ++i)
      pthread_join(makers[i], NULL);
    printf("%lu %lu\n", lives, wrong);
  }
  return 0;
}

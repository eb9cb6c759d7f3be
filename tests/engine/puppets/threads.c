// "N M": N threads call work() M times each; prints the sum of their own counts. "N": they go on
// until the next line comes, with numbers from 1 to 1024, and each compares what it got with what it
// must get. "total": how many calls all of those have made.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static long per_thread;
static _Thread_local unsigned long mine;

__attribute__((noinline)) unsigned long work(unsigned long number) { return mine += number ? 1 : 0; }

static volatile int ended;
static unsigned long total;
static void* run_on(void* unused) {
  (void)unused;
  unsigned long expected = 0;
  while (!ended) {
    if (work(expected % 1024 + 1) != expected + 1) return (void*)1;
    ++expected;
  }
  __atomic_fetch_add(&total, expected, __ATOMIC_RELAXED);
  return NULL;
}

static unsigned long until_told(long threads) {
  char line[64];
  pthread_t ids[256];
  unsigned long wrong = 0;
  ended = 0;
  for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, run_on, NULL);
  printf("running\n");
  if (!fgets(line, sizeof line, stdin)) return 1;
  ended = 1;
  for (long i = 0; i < threads; ++i) {
    void* result;
    pthread_join(ids[i], &result);
    wrong += (unsigned long)result;
  }
  return wrong;
}

static void* run(void* unused) {
  (void)unused;
  for (long i = 1; i <= per_thread; ++i) work(i);
  return (void*)mine;
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    char* rest;
    if (line[0] == 't') {
      printf("%lu\n", total);
      continue;
    }
    long threads = strtol(line, &rest, 10);
    per_thread = strtol(rest, NULL, 10);
    if (per_thread == 0) {
      printf("%lu wrong\n", until_told(threads));
      continue;
    }
    pthread_t ids[256];
    unsigned long sum = 0;
    for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, run, NULL);
    for (long i = 0; i < threads; ++i) {
      void* result;
      pthread_join(ids[i], &result);
      sum += (unsigned long)result;
    }
    printf("%lu\n", sum);
  }
  return 0;
}

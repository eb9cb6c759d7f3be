// Its first thread has ended: another reads lines. "N": calls work() N times; prints how often it has
// been called and how often it was wrong. "end": ends.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noipa)) long work(long n) {
  __asm__ volatile("" ::: "memory");
  return 5 * n + 2;
}

static pthread_t leader;

static void* serve(void* unused) {
  char line[64];
  long calls = 0, wrong = 0;
  (void)unused;
  pthread_join(leader, NULL);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) && line[0] != 'e') {
    for (long count = atol(line); count > 0; --count, ++calls)
      wrong += work(calls) != 5 * calls + 2;
    printf("%ld %ld\n", calls, wrong);
  }
  _exit(7);
}

int main(void) {
  pthread_t thread;
  setvbuf(stdout, NULL, _IOLBF, 0);
  leader = pthread_self();
  pthread_create(&thread, NULL, serve, NULL);
  pthread_exit(NULL);
}

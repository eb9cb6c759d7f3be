// "N": N threads call the functions below without end, check what they get and count their rounds.
// "count": answers "ROUNDS WRONG", of all threads. Ends with its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// Most threads sleep now and then, as others could not get at the CPUs otherwise; some never do.
enum { kMostThreads = 256, kSpins = 16, kRoundsAtOnce = 16 };
static struct {
  _Alignas(64) volatile unsigned long rounds;
  volatile unsigned long wrong;
} counts[kMostThreads];
static volatile int ended;

__attribute__((noipa)) unsigned long quick(unsigned long number) { return number * 3 + 1; }

__attribute__((noipa)) unsigned long plain(unsigned long number) { return number * 5 + 2; }

__attribute__((noipa)) unsigned long deep(unsigned long depth) {
  return depth == 0 ? 0 : depth + deep(depth - 1);
}

// A popf, whose copy takes a second trap.
unsigned long flags(unsigned long number);
__asm__(
    ".globl flags\n.type flags, @function\n"
    "flags: push %rdi\n\tpushfq\n"
    ".globl flags_back\n.type flags_back, @function\n"
    "flags_back: popfq\n\tpop %rax\n\tret\n");

static void* run(void* argument) {
  const size_t i = (size_t)argument;
  while (!ended) {
    const unsigned long n = counts[i].rounds;
    unsigned long wrong = quick(n) != n * 3 + 1;
    wrong += plain(n) != n * 5 + 2;
    wrong += deep(n % 4) != (n % 4) * (n % 4 + 1) / 2;
    wrong += flags(n) != n;
    counts[i].wrong += wrong;
    ++counts[i].rounds;
    if (i % kSpins != 0 && n % kRoundsAtOnce == 0) usleep(100);
  }
  return NULL;
}

static void print_counts(void) {
  unsigned long rounds = 0, wrong = 0;
  for (int i = 0; i < kMostThreads; ++i) {
    rounds += counts[i].rounds;
    wrong += counts[i].wrong;
  }
  printf("%lu %lu\n", rounds, wrong);
}

int main(void) {
  char line[64];
  pthread_t threads[kMostThreads];
  long count = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    if (count == 0) {
      count = strtol(line, NULL, 10);
      for (long i = 0; i < count; ++i)
        pthread_create(&threads[i], NULL, run, (void*)i);
    }
    print_counts();
  }
  ended = 1;
  for (long i = 0; i < count; ++i)
    pthread_join(threads[i], NULL);
  return 0;
}

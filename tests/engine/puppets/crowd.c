// "N": N threads call place_00 to place_63 in turn until the next line comes, and compare what they
// get with what they must get; prints how many went wrong.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long Place(unsigned long);

#define PLACE(tens, ones)                                                            \
  __attribute__((noinline)) unsigned long place_##tens##ones(unsigned long number) { \
    static volatile unsigned long calls;                                             \
    calls = calls + 1;                                                               \
    return number * (tens + 3) + (ones + 1);                                         \
  }
#define EIGHT(macro, tens)                                                                  \
  macro(tens, 0) macro(tens, 1) macro(tens, 2) macro(tens, 3) macro(tens, 4) macro(tens, 5) \
      macro(tens, 6) macro(tens, 7)
#define ALL(macro)                                                                                \
  EIGHT(macro, 0)                                                                                 \
  EIGHT(macro, 1) EIGHT(macro, 2) EIGHT(macro, 3) EIGHT(macro, 4) EIGHT(macro, 5) EIGHT(macro, 6) \
      EIGHT(macro, 7)

ALL(PLACE)

#define NAME(tens, ones) {place_##tens##ones, tens + 3, ones + 1},
static const struct {
  Place* call;
  unsigned long factor, term;
} places[] = {ALL(NAME)};

static volatile int ended;

static void* run(void* unused) {
  (void)unused;
  for (unsigned long number = 0; !ended; ++number) {
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
      if (places[i].call(number) != number * places[i].factor + places[i].term) return (void*)1;
    }
  }
  return NULL;
}

int main(void) {
  char line[64];
  pthread_t threads[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    const long count = strtol(line, NULL, 10);
    unsigned long wrong = 0;
    ended = 0;
    for (long i = 0; i < count; ++i)
      pthread_create(&threads[i], NULL, run, NULL);
    printf("running\n");
    if (!fgets(line, sizeof line, stdin)) return 1;
    ended = 1;
    for (long i = 0; i < count; ++i) {
      void* result;
      pthread_join(threads[i], &result);
      wrong += (unsigned long)result;
    }
    printf("%lu wrong\n", wrong);
  }
  return 0;
}

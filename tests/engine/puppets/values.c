// For each line "SEED COUNT" on stdin calls work() COUNT times with numbers and texts that follow
// from SEED, then prints how often it has been called in all.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long calls;
static unsigned long state;

__attribute__((noinline)) long work(long number, const char* text, const double* real) {
  ++calls;
  return number * 2 + (text ? text[0] : 0) + (long)*real;
}

static unsigned long next(unsigned long below) {
  state = state * 6364136223846793005ul + 1442695040888963407ul;
  return (state >> 33) % below;
}

int main(void) {
  static const char* const texts[] = {"",        "a",         "abc",      "abcabc", "/etc/passwd",
                                      "/etc/ab", "xaby.conf", "[brackets]", "hello world", NULL};
  static const double reals[] = {0.0, -0.0, 1.5, -1.5, 2.5, 1e9, -1e-300};
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    char* rest;
    state = strtoul(line, &rest, 10);
    for (long count = atol(rest); count > 0; --count) {
      long number = (long)next(16) - 4;
      const char* text = texts[next(sizeof texts / sizeof *texts)];
      work(number, text, &reals[next(sizeof reals / sizeof *reals)]);
    }
    printf("%lu\n", calls);
  }
  return 0;
}

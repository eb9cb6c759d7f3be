// Calls work() for each line on stdin "N": N times, then prints its own count of calls and the sum
// of what they returned.
#include <stdio.h>
#include <stdlib.h>

static volatile unsigned long calls;

__attribute__((noinline)) long work(long number, const char* text) {
  ++calls;
  return number * 2 + text[0];
}

int main(void) {
  char line[64];
  long sum = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long count = atol(line);
    for (long i = 0; i < count; ++i) sum += work(i, "hello world");
    printf("%lu %ld\n", calls, sum);
  }
  return 0;
}

// "N": has the library throw and catch N times; prints the sum of its answers.
#include <stdio.h>
#include <stdlib.h>

long catch_one(long depth);

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long sum = 0;
    for (long i = 0; i < atol(line); ++i) sum += catch_one(5);
    printf("%ld\n", sum);
  }
  return 0;
}

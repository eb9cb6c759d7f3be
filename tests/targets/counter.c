// Works until its standard input ends, then tells how often and whether every answer was right.
#include <poll.h>
#include <stdint.h>
#include <unistd.h>

#include "gate.h"

__attribute__((noipa)) uint64_t work(uint64_t n, const char* text) {
  __asm__ volatile("" ::: "memory");
  return n * 2 + (uint64_t)text[0];
}

int main(int argc, char** argv) {
  uint64_t calls = 0, wrong = 0;
  (void)argc, (void)argv;
  puts("ready");
  fflush(stdout);
  struct pollfd input = {0, POLLIN, 0};
  while (poll(&input, 1, 1) == 0) {
    for (int i = 0; i < 20; ++i, ++calls) wrong += work(calls, "counter") != calls * 2 + 'c';
  }
  printf("calls %llu wrong %llu\n", (unsigned long long)calls, (unsigned long long)wrong);
  return wrong != 0;
}

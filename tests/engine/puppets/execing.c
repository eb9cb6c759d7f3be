// Executes itself again and again until its input is closed: each image calls probed() and checks
// what it returns. The first prints "ready".
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noipa))

PROBED long probed(long x) { return x + 1; }

int main(int argc, char** argv) {
  if (argc == 1) {
    printf("ready\n");
    fflush(stdout);
  }
  long sum = 0;
  for (int i = 0; i < 20; ++i) sum = probed(sum);
  if (sum != 20) return 1;
  struct pollfd input = {.fd = 0};
  if (poll(&input, 1, 0) == 1) return 0;
  execl(argv[0], argv[0], "again", (char*)0);
  return 2;
}

// "N": finds the memory that it shares with the daemon and overwrites, with the random numbers of
// seed N, what its hijacked returns are kept in, over and over while it makes probed calls. Prints
// "done" if it lives.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char* start;
static char* end;
static unsigned long state;

static unsigned long next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

__attribute__((noinline, noipa)) long work(long depth) {
  return depth == 0 ? 0 : 1 + work(depth - 1);
}

static void find_memory(void) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps)) {
    void *from, *to;
    if (strstr(line, "probed-ring") && sscanf(line, "%p-%p", &from, &to) == 2) {
      start = from;
      end = to;
    }
  }
  fclose(maps);
}

// The frames come last; most numbers are near to what could be meant.
static void scribble(void) {
  unsigned long* stacks = (unsigned long*)(end - (24 << 20));
  if ((char*)stacks < start) stacks = (unsigned long*)start;
  unsigned long words = (unsigned long)((unsigned long*)end - stacks);
  for (unsigned long i = 0; i + 64 < words; i += 1 + next() % 64) {
    unsigned long here = (unsigned long)__builtin_frame_address(0);
    unsigned long kinds[] = {next(), here + next() % 4096 * 8, next() % 128, stacks[i] ^ 8};
    if (stacks[i] != 0 || next() % 64 == 0) stacks[i] = kinds[next() % 4];
  }
}

static void* run(void* unused) {
  for (int i = 0; i < 20; ++i) work(50);
  return unused;
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    state = strtoul(line, NULL, 10) * 0x9e3779b97f4a7c15ul + 1;
    find_memory();
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, run, NULL);
    for (int i = 0; i < 5; ++i) {
      if (start) scribble();
      work(60);
    }
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    printf("done\n");
  }
  return 0;
}

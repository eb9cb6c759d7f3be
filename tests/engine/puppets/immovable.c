// Its code cannot be written, not even by a debugger, after "freeze": the page of probed() is then
// a read-only shared mapping of a file that holds what stood there. "thaw": a private mapping of the
// same. "call" calls probed() and says what it returned.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline, noipa, section(".text.probed"), aligned(4096))) long probed(long x) {
  return x + 1;
}

static void* Page(void) { return (void*)((uintptr_t)probed & ~(uintptr_t)4095); }

static int Map(int file, int kind) {
  void* mapped = mmap(Page(), 4096, PROT_READ | PROT_EXEC, kind | MAP_FIXED, file, 0);
  return mapped == MAP_FAILED ? -1 : 0;
}

int main(void) {
  int memory = memfd_create("page", 0), frozen = -1;
  char path[64], line[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    long result = 0;
    if (strcmp(line, "call\n") == 0) result = probed(1);
    if (strcmp(line, "freeze\n") == 0) {
      if (pwrite(memory, Page(), 4096, 0) != 4096) return 1;
      frozen = open(path, O_RDONLY);
      result = Map(frozen, MAP_SHARED);
    }
    if (strcmp(line, "thaw\n") == 0) result = Map(frozen, MAP_PRIVATE);
    printf("%ld\n", result);
    fflush(stdout);
  }
  return 0;
}

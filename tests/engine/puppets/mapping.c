// mapping FILE OFFSET: maps FILE itself, as no dynamic linker would, and calls the function at
// OFFSET. Commands:
//   map N [shared]   map it, call N times, unmap it
//   protect N        the same, but executable only later
//   keep, call N     map it and let it be; call it there
//   move             move that elsewhere
// Answers: calls, what went wrong.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

typedef unsigned long Function(unsigned long);

static unsigned long calls, wrong, offset;
static int file;
static size_t size;

static unsigned char* map(int protection, int flags) {
  void* place = mmap(NULL, size, protection, flags, file, 0);
  if (place == MAP_FAILED) ++wrong;
  return place;
}

static void call(unsigned char* place, long count) {
  Function* function = (Function*)(place + offset);
  for (long i = 0; i < count; ++i, ++calls)
    wrong += function(i) != (unsigned long)i * 7 + 3;
}

int main(int argc, char** argv) {
  char line[128], word[64], how[64];
  unsigned char* kept = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  if (argc < 3) return 2;
  struct stat status;
  file = open(argv[1], O_RDWR);
  if (file < 0 || fstat(file, &status) != 0) return 1;
  size = status.st_size;
  offset = strtoul(argv[2], NULL, 0);
  while (fgets(line, sizeof line, stdin)) {
    long n = 0;
    how[0] = '\0';
    sscanf(line, "%63s %ld %63s", word, &n, how);
    if (!strcmp(word, "map")) {
      int shared = !strcmp(how, "shared");
      unsigned char* place = map(PROT_READ | PROT_EXEC | (shared ? PROT_WRITE : 0),
                                 shared ? MAP_SHARED : MAP_PRIVATE);
      call(place, n);
      munmap(place, size);
    }
    if (!strcmp(word, "protect")) {
      unsigned char* place = map(PROT_READ, MAP_PRIVATE);
      mprotect(place, size, PROT_READ | PROT_EXEC);
      call(place, n);
      munmap(place, size);
    }
    if (!strcmp(word, "keep")) kept = map(PROT_READ | PROT_EXEC, MAP_PRIVATE);
    if (!strcmp(word, "call")) call(kept, n);
    if (!strcmp(word, "move")) {
      void* place = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      kept = mremap(kept, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
    }
    printf("%lu %lu\n", calls, wrong);
  }
  return 0;
}

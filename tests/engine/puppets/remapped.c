// Moves its own code into memory without a file, as programs do to have it on huge pages. Commands:
//   remap     does that
//   call N    calls near() and far() N times each
//   check     compares the code with what it was at the start
// Answers: calls of each, what went wrong.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define MOVED __attribute__((noipa, section(".moved"), aligned(16)))
enum { kSize = 2 << 20, kPage = 4096 };

// Alone on their pages, so that main() can stay where it is.
__asm__(".section .moved,\"ax\",@progbits\n.balign 4096\nmoved_begin:\n.text\n");
MOVED unsigned long near(unsigned long number) { return number * 3 + 1; }
MOVED unsigned long far(unsigned long number) { return number * 5 + 2; }
__asm__(".section .moved,\"ax\",@progbits\n.balign 4096\nmoved_end:\n.byte 0\n.balign 4096\n.text\n");
extern unsigned char moved_begin[], moved_end[];

static unsigned char original[kPage * 4];

static unsigned long remap(void) {
  const size_t size = moved_end - moved_begin;
  unsigned char* copy =
      mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return 1;
  madvise(copy, kSize, MADV_HUGEPAGE);
  memcpy(copy, moved_begin, size);
  if (mprotect(copy, size, PROT_READ | PROT_EXEC) != 0) return 1;
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
  return mremap(copy, size, size, flags, moved_begin) != moved_begin;
}

int main(void) {
  char line[128], word[64];
  unsigned long calls = 0, wrong = 0;
  const size_t size = moved_end - moved_begin;
  if (size > sizeof original) return 2;
  memcpy(original, moved_begin, size);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long n = 0;
    sscanf(line, "%63s %ld", word, &n);
    if (!strcmp(word, "remap")) wrong += remap();
    if (!strcmp(word, "check")) {
      for (size_t i = 0; i < size; ++i)
        wrong += moved_begin[i] != original[i];
    }
    if (!strcmp(word, "call")) {
      for (; n > 0; --n, ++calls) {
        wrong += near(calls) != calls * 3 + 1;
        wrong += far(calls) != calls * 5 + 2;
      }
    }
    printf("%lu %lu\n", calls, wrong);
  }
  return 0;
}

// reloading LIBRARY: loads and unloads reloaded.c, and counts its calls. Commands:
//   open, call N, close   one step of a cycle
//   cycle N CALLS         all of them, N times; every other time other code takes the library's place
//   spin CALLS            the same until the next line comes, which is not answered
// Answers: calls of first, calls of second, what went wrong.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

typedef unsigned long Function(unsigned long);

unsigned long first_calls, second_calls;
static unsigned long wrong;
static const char* path;
static void* library;
static Function *first, *second;
static unsigned char* stranger;
static const size_t kStrangerSize = 0x3000;

static void load(void) {
  library = dlopen(path, RTLD_NOW);
  if (library == NULL) {
    ++wrong;
    return;
  }
  first = (Function*)dlsym(library, "first");
  second = (Function*)dlsym(library, "second");
}

static void call(long count) {
  for (long i = 0; i < count; ++i) {
    wrong += first(i) != (unsigned long)i * 3 + 1;
    wrong += second(i) != (unsigned long)i * 5 + 2;
  }
}

// Code of somebody else, full of breakpoints of its own.
static void take_place(void* at) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  void* place = mmap(at, kStrangerSize, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
  if (place == MAP_FAILED) return;
  stranger = place;
  memset(stranger, 0xcc, kStrangerSize);
}

static void give_place(void) {
  for (size_t i = 0; i < kStrangerSize; ++i)
    wrong += stranger[i] != 0xcc;
  munmap(stranger, kStrangerSize);
  stranger = NULL;
}

static void unload(int replace) {
  Dl_info info = {0};
  dladdr((void*)first, &info);
  wrong += dlclose(library) != 0;
  if (replace) take_place(info.dli_fbase);
}

static void cycle(long calls) {
  load();
  call(calls);
  int replace = stranger == NULL;
  if (!replace) give_place();
  unload(replace);
}

static int line_is_there(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  return poll(&input, 1, 0) != 0;
}

int main(int argc, char** argv) {
  char line[128], word[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  setvbuf(stdin, NULL, _IONBF, 0);
  path = argv[1];
  printf("ready\n");
  while (argc > 1 && fgets(line, sizeof line, stdin)) {
    long n = 0, calls = 0;
    sscanf(line, "%63s %ld %ld", word, &n, &calls);
    if (!strcmp(word, "open")) load();
    if (!strcmp(word, "call")) call(n);
    if (!strcmp(word, "close")) unload(0);
    if (!strcmp(word, "cycle"))
      while (n-- > 0)
        cycle(calls);
    if (!strcmp(word, "spin")) {
      while (!line_is_there())
        cycle(n);
      if (!fgets(line, sizeof line, stdin)) break;
    }
    printf("%lu %lu %lu\n", first_calls, second_calls, wrong);
  }
  return 0;
}

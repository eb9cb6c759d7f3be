// spaces LIBRARY: loads plugin.c twice, each in a name space of its own. "call N": calls each N
// times; answers how often all were called, their constructors' calls included, and what their
// tracepoints' semaphores say. "close": unloads the second.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef unsigned long Work(unsigned long);
enum { kSpaces = 2 };

int main(int argc, char** argv) {
  char line[128], word[64];
  void* libraries[kSpaces] = {NULL};
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (argc > 1 && fgets(line, sizeof line, stdin)) {
    long n = 0;
    sscanf(line, "%63s %ld", word, &n);
    if (!strcmp(word, "open")) {
      libraries[0] = dlopen(argv[1], RTLD_NOW);
      libraries[1] = dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW);
    }
    if (!strcmp(word, "close")) {
      dlclose(libraries[1]);
      libraries[1] = NULL;
    }
    unsigned long calls = 0;
    int semaphores = 0;
    for (int i = 0; i < kSpaces && libraries[i] != NULL; ++i) {
      Work* work = (Work*)dlsym(libraries[i], "plugin_work");
      for (long call = 0; call < n; ++call)
        work(1);
      calls += work(0);
      semaphores = semaphores * 10 + *(volatile unsigned short*)dlsym(libraries[i], "plugin_semaphore");
    }
    printf("%lu %d\n", calls, semaphores);
  }
  return 0;
}

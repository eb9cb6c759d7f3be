// "open" loads the library, "call N" calls it, "close" unloads it; prints its count.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  char line[128], word[64];
  void* library = NULL;
  unsigned long (*work)(unsigned long) = NULL;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (argc > 1 && fgets(line, sizeof line, stdin)) {
    long n = 0;
    unsigned long count = 0;
    sscanf(line, "%63s %ld", word, &n);
    if (!strcmp(word, "open")) {
      library = dlopen(argv[1], RTLD_NOW);
      work = (unsigned long (*)(unsigned long))dlsym(library, "plugin_work");
    }
    if (!strcmp(word, "call")) {
      while (n-- > 0) count = work(1);
    }
    if (!strcmp(word, "close")) dlclose(library);
    printf("%lu\n", count);
  }
  return 0;
}

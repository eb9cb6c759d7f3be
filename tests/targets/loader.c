// Loads a plugin, uses it, unloads it, loads it again. loader PLUGIN CALLS [wait]
#include <dlfcn.h>
#include <stdlib.h>

#include "gate.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int calls = atoi(argv[2]);
  long sum = 0;
  WaitIfTold(argc, argv);
  for (int round = 0; round < 2; ++round) {
    void* plugin = dlopen(argv[1], RTLD_NOW);
    if (plugin == NULL) {
      puts(dlerror());
      return 1;
    }
    long (*work)(long) = (long (*)(long))dlsym(plugin, "plugin_work");
    for (int i = 0; i < calls; ++i) sum += work(i);
    dlclose(plugin);
  }
  printf("calls %d sum %ld\n", 2 * calls, sum);
  return 0;
}

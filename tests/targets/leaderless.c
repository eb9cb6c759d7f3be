// A process whose first thread has ended before the others. Obeys words from its input: "x" makes
// 100 calls, "oPATH" opens a plugin and makes 100 calls of that; each is answered by the number of
// calls so far. Ends with its input.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int calls;
static long sum;

__attribute__((noipa)) long work(const char* text, long number) {
  return number + (long)strlen(text);
}

static void Work(void) {
  for (int i = 0; i < 100; ++i) sum += work("some text", ++calls);
}

static void Open(const char* path) {
  void* plugin = dlopen(path, RTLD_NOW);
  if (plugin == NULL) {
    puts(dlerror());
    exit(1);
  }
  long (*of_plugin)(long) = (long (*)(long))dlsym(plugin, "plugin_work");
  for (int i = 0; i < 100; ++i) sum += of_plugin(++calls);
}

static void AwaitEndOfFirst(void) {
  char state = '?';
  while (state != 'Z') {
    FILE* file = fopen("/proc/self/stat", "r");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) exit(2);
    fclose(file);
    usleep(1000);
  }
}

static void* Run(void* unused) {
  (void)unused;
  char line[4096];
  AwaitEndOfFirst();
  puts("ready");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (line[0] == 'x') Work();
    if (line[0] == 'o') Open(line + 1);
    printf("calls %d\n", calls);
    fflush(stdout);
  }
  exit(sum > 0 ? 0 : 3);
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, Run, NULL) != 0) return 2;
  pthread_exit(NULL);
}

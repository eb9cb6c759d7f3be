// fork, vfork+exec and exec, with one probed function on every side. forker CHILDREN CALLS [wait]
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"

__attribute__((noipa)) int work(int n) {
  __asm__ volatile("" ::: "memory");
  return n + 1;
}

static int WorkAll(int calls) {
  int done = 0;
  for (int i = 0; i < calls; ++i) done = work(done);
  return done;
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "exec-child") == 0) return WorkAll(atoi(argv[2]));
  int children = argc > 1 ? atoi(argv[1]) : 2;
  int calls = argc > 2 ? atoi(argv[2]) : 10;
  char calls_text[16];
  snprintf(calls_text, sizeof calls_text, "%d", calls);
  WaitIfTold(argc, argv);
  int total = WorkAll(calls);
  for (int i = 0; i < children; ++i) {
    pid_t child = i % 2 == 0 ? fork() : vfork();
    if (child == 0 && i % 2 == 0) _exit(WorkAll(calls));
    if (child == 0) {
      execl("/proc/self/exe", argv[0], "exec-child", calls_text, (char*)NULL);
      _exit(255);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status)) printf("child died of %d\n", WTERMSIG(status));
    total += WEXITSTATUS(status);
  }
  printf("total %d\n", total + WorkAll(calls));
  return 0;
}

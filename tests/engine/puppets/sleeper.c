// Sleeps so that nobody can stop it: until a child has ended for which it waits as for one of vfork's,
// but which has its own memory and is none of the tracer's business (CLONE_UNTRACED). Commands:
//   call    calls probed() and says what it returned
//   thread  lets another thread fall asleep; says its id
//   wake    wakes that thread, which says so
//   alone   falls asleep itself, until one more byte comes
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noipa))

PROBED long probed(long x) { return x + 1; }

static int wake[2];

static int Child(void* input) {
  char byte;
  while (read(*(int*)input, &byte, 1) < 0) {
  }
  _exit(0);
}

static void Sleep(int input) {
  static char stack[65536] __attribute__((aligned(16)));
  int flags = CLONE_VFORK | CLONE_UNTRACED | SIGCHLD;
  waitpid(clone(Child, stack + sizeof stack, flags, &input), NULL, 0);
}

static void* SleepInThread(void* unused) {
  printf("%ld\n", syscall(SYS_gettid));
  fflush(stdout);
  Sleep(wake[0]);
  printf("awake %ld\n", probed(41));
  fflush(stdout);
  return unused;
}

// Byte by byte: what follows "alone" is for the child. False at the end of the input.
static int ReadLine(char* line, size_t size) {
  size_t length = 0;
  while (length < size - 1) {
    if (read(0, line + length, 1) != 1) return 0;
    if (line[length] == '\n') break;
    ++length;
  }
  line[length] = '\0';
  return 1;
}

int main(void) {
  printf("ready\n");
  fflush(stdout);
  if (pipe(wake) != 0) return 1;
  char line[64];
  pthread_t id;
  while (ReadLine(line, sizeof line)) {
    if (strcmp(line, "thread") == 0) pthread_create(&id, NULL, SleepInThread, NULL);
    if (strcmp(line, "wake") == 0 && write(wake[1], "w", 1) != 1) return 1;
    if (strcmp(line, "alone") == 0) Sleep(0);
    if (strcmp(line, "alone") == 0) printf("awake %ld\n", probed(41));
    if (strcmp(line, "call") == 0) printf("%ld\n", probed(1));
    fflush(stdout);
  }
  return 0;
}

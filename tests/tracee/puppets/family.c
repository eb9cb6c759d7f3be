// Makes threads, children and images. family WAY [COUNT]: prints "ready ADDRESS", waits for a byte,
// does it COUNT times, prints "calls TOTAL" with the calls of Probed() made in this process.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static atomic_long calls;
static char *self;

__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }
static void Call(void) {
  Probed();
  atomic_fetch_add(&calls, 1);
}

static int Reap(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

static void *CallOnce(void *unused) {
  (void)unused;
  Call();
  return NULL;
}
static int Threads(void) {
  pthread_t ids[4];
  for (int i = 0; i < 4; ++i) pthread_create(&ids[i], NULL, CallOnce, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(ids[i], NULL);
  return 0;
}

static int Fork(void) {
  pid_t child = fork();
  if (child == 0) {
    Call();
    _exit(0);
  }
  return Reap(child);
}

static int Vfork(void) {
  pid_t child = vfork();
  if (child == 0) {
    Call();
    execl("/bin/true", "true", NULL);
    _exit(1);
  }
  return Reap(child);
}

static int Spawn(void) {
  pid_t child;
  char *arguments[] = {"true", NULL};
  if (posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) != 0) return -1;
  return Reap(child);
}

static int ShareMemory(void *unused) {
  (void)unused;
  Call();
  return 0;
}
static int CloneVm(void) {
  static char stack[65536] __attribute__((aligned(16)));
  return Reap(clone(ShareMemory, stack + sizeof stack, CLONE_VM | SIGCHLD, NULL));
}

static void *Idle(void *unused) {
  pause();
  return unused;
}
static void *ExecSelf(void *unused) {
  (void)unused;
  execl(self, self, "threads", "3", NULL);
  return NULL;
}
static int ExecFromThread(void) {
  pthread_t id, other;
  pthread_create(&other, NULL, Idle, NULL);
  pthread_create(&id, NULL, ExecSelf, NULL);
  pause();
  return 1;
}
static int Exec(void) {
  ExecSelf(NULL);
  return 1;
}

static void *OutliveLeader(void *unused) {
  (void)unused;
  while (1) {
    char path[64], text[512] = {0};
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", getpid());
    FILE *file = fopen(path, "r");
    if (file == NULL) break;
    size_t count = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (count == 0 || strstr(text, ") Z ") != NULL) break;
  }
  Call();
  printf("calls %ld\n", atomic_load(&calls));
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) == 1) Call();
  exit(0);
}
static int LeaderExits(void) {
  pthread_t id;
  pthread_create(&id, NULL, OutliveLeader, NULL);
  pthread_exit(NULL);
}

static void *Crash(void *unused) {
  (void)unused;
  *(volatile int *)8 = 1;
  return NULL;
}
static int Segfault(void) {
  pthread_t id, other;
  pthread_create(&other, NULL, Idle, NULL);
  pthread_create(&id, NULL, Crash, NULL);
  return pause();
}

static const struct {
  const char *name;
  int (*run)(void);
} ways[] = {{"threads", Threads}, {"fork", Fork},           {"vfork", Vfork},
            {"spawn", Spawn},     {"clone_vm", CloneVm},    {"exec_from_thread", ExecFromThread},
            {"exec", Exec},       {"leader_exits", LeaderExits}, {"segfault", Segfault}};

int main(int argc, char **argv) {
  self = argv[0];
  int count = argc > 2 ? atoi(argv[2]) : 1;
  printf("ready %p\n", (void *)Probed);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  int failures = 0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (argc < 2 || strcmp(ways[i].name, argv[1]) != 0) continue;
    for (int n = 0; n < count; ++n) failures += ways[i].run() != 0;
  }
  printf("calls %ld\n", atomic_load(&calls));
  return failures != 0;
}

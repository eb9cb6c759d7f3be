// Threads and children that are made with CLONE_UNTRACED, of which no tracer is told. Each calls
// work() 20 times. untraced [spin|debug|sleep] [wait]; with "spin", such a thread then calls it until a
// line comes; with "debug", there is only a child, whom its parent traces for a while first; with
// "sleep", one that nobody can stop for a while first.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"

enum { kCalls = 20, kStackSize = 65536 };

static struct {
  long calls, wrong;
  int spin;
} * shared;
static char stack[kStackSize] __attribute__((aligned(16)));
static uint64_t thread_block[64];  // what its fs points to
static pid_t thread_alive;

__attribute__((noipa)) long work(long n) {
  __asm__ volatile("" ::: "memory");
  __atomic_fetch_add(&shared->calls, 1, __ATOMIC_RELAXED);
  return 3 * n + 1;
}

// Nothing of the C library: these have no thread of it.
static int Child(void* unused) {
  (void)unused;
  long i = 0;
  const struct timespec millisecond = {0, 1000000};
  for (; i < kCalls || __atomic_load_n(&shared->spin, __ATOMIC_ACQUIRE); ++i) {
    shared->wrong += work(i) != 3 * i + 1;
    if (i % kCalls == 0) syscall(SYS_nanosleep, &millisecond, NULL);
  }
  syscall(SYS_exit, 5);
  return 0;
}

static void Thread(void) {
  thread_block[0] = thread_block[2] = (uint64_t)thread_block;
  thread_alive = 1;
  clone(Child, stack + kStackSize,
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
            CLONE_SETTLS | CLONE_CHILD_CLEARTID | CLONE_UNTRACED,
        NULL, NULL, thread_block, &thread_alive);
}
static void JoinThread(void) {
  while (__atomic_load_n(&thread_alive, __ATOMIC_ACQUIRE) != 0)
    syscall(SYS_futex, &thread_alive, FUTEX_WAIT, 1, NULL, NULL, 0);
}

static void Process(const char* name, int flags) {
  int status = 0;
  pid_t child = clone(Child, stack + kStackSize, flags | CLONE_UNTRACED | SIGCHLD, NULL);
  waitpid(child, &status, 0);
  printf("%s %#x\n", name, status);
}

static int DebuggedChild(void* unused) {
  syscall(SYS_ptrace, PTRACE_TRACEME, 0, NULL, NULL);
  syscall(SYS_kill, syscall(SYS_getpid), SIGSTOP);
  return Child(unused);
}

// Longer than a tracer takes to find the child.
static int Debug(void) {
  int status = 0;
  const struct timespec while_it_is_found = {0, 300000000};
  pid_t child = clone(DebuggedChild, stack + kStackSize, CLONE_UNTRACED | SIGCHLD, NULL);
  waitpid(child, &status, 0);
  nanosleep(&while_it_is_found, NULL);
  ptrace(PTRACE_DETACH, child, NULL, NULL);
  waitpid(child, &status, 0);
  printf("debugged %#x calls %ld\n", status, shared->calls);
  return shared->wrong != 0;
}

static int BriefChild(void* unused) {
  const struct timespec while_it_is_tried = {6, 0};
  (void)unused;
  syscall(SYS_nanosleep, &while_it_is_tried, NULL);
  syscall(SYS_exit, 0);
  return 0;
}

// Waits as for a child of vfork(2), which has its own memory, so that its work is not disturbed.
static int SleepingChild(void* unused) {
  static char its_stack[kStackSize] __attribute__((aligned(16)));
  clone(BriefChild, its_stack + kStackSize, CLONE_VFORK | CLONE_UNTRACED | SIGCHLD, NULL);
  return Child(unused);
}

static int Sleep(void) {
  int status = 0;
  pid_t child = clone(SleepingChild, stack + kStackSize, CLONE_UNTRACED | SIGCHLD, NULL);
  waitpid(child, &status, 0);
  printf("slept %#x calls %ld\n", status, shared->calls);
  return shared->wrong != 0;
}

int main(int argc, char** argv) {
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  WaitIfTold(argc, argv);
  if (argc > 1 && strcmp(argv[1], "debug") == 0) return Debug();
  if (argc > 1 && strcmp(argv[1], "sleep") == 0) return Sleep();
  Thread();
  JoinThread();
  Process("vm", CLONE_VM);
  Process("vm vfork", CLONE_VM | CLONE_VFORK);
  Process("fork", 0);
  if (argc > 2) {
    __atomic_store_n(&shared->spin, 1, __ATOMIC_RELEASE);
    Thread();
    puts("spins");
    fflush(stdout);
    getchar();
    __atomic_store_n(&shared->spin, 0, __ATOMIC_RELEASE);
    JoinThread();
  }
  printf("calls %ld wrong %ld\n", shared->calls, shared->wrong);
  return shared->wrong != 0;
}

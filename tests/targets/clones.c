// Children by every set of what clone(2) may share that makes no thread, then threads by every set
// that makes one, with and without a thread pointer of their own; each calls work() some times, and
// so does who has made it, meanwhile. clones [wait]; "calls" is how often work() ran, "shared" how
// often in this process and in those that have its memory.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"

enum { kCalls = 10, kStackSize = 65536 };

static struct {
  unsigned long calls, wrong, meanwhile;
} * shared;
static char stack[kStackSize] __attribute__((aligned(16)));
static uint64_t thread_block[64];  // what its fs points to
static pid_t thread_alive;

__attribute__((noipa)) unsigned long work(unsigned long n) {
  __atomic_add_fetch(&shared->calls, 1, __ATOMIC_RELAXED);
  return 3 * n + 1;
}

__attribute__((noipa)) static void WorkOnce(unsigned long n) {
  if (work(n) != 3 * n + 1) __atomic_add_fetch(&shared->wrong, 1, __ATOMIC_RELAXED);
}

// Nothing of the C library: these have no thread of it.
static int Child(void* is_thread) {
  for (int i = 0; i < kCalls; ++i) WorkOnce(i);
  syscall(is_thread != NULL ? SYS_exit : SYS_exit_group, 7);
  return 0;
}

static const int kFlags[] = {CLONE_VM,      CLONE_FS, CLONE_FILES, CLONE_SIGHAND,
                             CLONE_SYSVSEM, CLONE_IO, CLONE_VFORK};
enum { kSets = 1 << (sizeof kFlags / sizeof *kFlags) };

static int FlagsOf(int set) {
  int flags = 0;
  for (unsigned i = 0; i < sizeof kFlags / sizeof *kFlags; ++i)
    if (set >> i & 1) flags |= kFlags[i];
  return flags;
}

// Returns how often work() ran in it if it had this process's memory.
static unsigned long Process(int flags) {
  int status = 0;
  pid_t child = clone(Child, stack + kStackSize, flags | SIGCHLD, NULL);
  while (child > 0 && waitpid(child, &status, __WALL | WNOHANG) == 0) {
    WorkOnce(5);
    ++shared->meanwhile;
  }
  printf(" %#x", child > 0 ? status : -1);
  return flags & CLONE_VM ? kCalls : 0;
}

static void Thread(int flags, int own_pointer) {
  const int needed = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_CHILD_CLEARTID;
  thread_block[0] = thread_block[2] = (uint64_t)thread_block;
  __atomic_store_n(&thread_alive, 1, __ATOMIC_SEQ_CST);
  pid_t thread = clone(Child, stack + kStackSize, flags | needed | (own_pointer ? CLONE_SETTLS : 0),
                       thread_block, NULL, thread_block, &thread_alive);
  while (thread > 0 && __atomic_load_n(&thread_alive, __ATOMIC_SEQ_CST) != 0) {
    WorkOnce(6);
    ++shared->meanwhile;
  }
  printf(" %d", thread > 0);
}

int main(int argc, char** argv) {
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  WaitIfTold(argc, argv);
  unsigned long in_children = 0, threads = 0;
  printf("processes:");
  for (int set = 0; set < kSets; ++set) {
    int flags = FlagsOf(set);
    if (flags & CLONE_SIGHAND && !(flags & CLONE_VM)) continue;
    in_children += Process(flags);
  }
  printf("\nthreads:");
  for (int set = 0; set < kSets; ++set) {
    int flags = FlagsOf(set);
    if (!(flags & CLONE_SIGHAND) || !(flags & CLONE_VM)) continue;
    for (int own_pointer = 0; own_pointer < 2; ++own_pointer, ++threads)
      Thread(flags, own_pointer);
  }
  printf("\nwrong %lu\n", shared->wrong);
  fprintf(stderr, "calls %lu shared %lu\n", shared->calls,
          shared->meanwhile + in_children + threads * kCalls);
  return shared->wrong != 0;
}

// Every way in which a process begins and ends, each with one probed call in it, and what the
// parent is told of it. What is printed depends on the ways only, so it is the same under probes.
// lives [wait]; "calls" is how often work() ran in all of them, "shared" how often in this process
// and in those that share its memory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gate.h"

enum { kCounterFd = 200, kSelfFd = 201, kStackSize = 65536 };

static unsigned* calls;  // in a memory file, which those that exec map anew
static char stack[kStackSize] __attribute__((aligned(16)));
static char copy[] = "/tmp/probed-lives-XXXXXX";
static char* const as_child[] = {"lives", "child", NULL};
static char* const as_self_fd[] = {"lives", "named", NULL};

__attribute__((noipa)) int work(int status) {
  __atomic_fetch_add(calls, 1, __ATOMIC_SEQ_CST);
  return status;
}

static int MapCounter(void) {
  calls = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, kCounterFd, 0);
  return calls == MAP_FAILED ? -1 : 0;
}

static int Call(void* unused) {
  (void)unused;
  syscall(SYS_exit_group, work(3));
  return 0;
}

static pid_t Fork(void) {
  pid_t child = fork();
  if (child == 0) _exit(work(3));
  return child;
}
static pid_t Vfork(void) {
  pid_t child = vfork();
  if (child == 0) _exit(work(3));
  return child;
}
static pid_t VforkExec(void) {
  pid_t child = vfork();
  if (child == 0) {
    execv("/proc/self/exe", as_child);
    _exit(99);
  }
  return child;
}
static pid_t Spawn(void) {
  pid_t child = -1;
  char* none[] = {NULL};
  posix_spawn(&child, "/proc/self/exe", NULL, NULL, as_child, none);
  return child;
}

static pid_t Clone(int flags) {
  return clone(Call, stack + kStackSize, flags, NULL);
}
static pid_t CloneVm(void) {
  return Clone(CLONE_VM | SIGCHLD);
}
static pid_t CloneVmVfork(void) {
  return Clone(CLONE_VM | CLONE_VFORK | SIGCHLD);
}
static pid_t CloneAllButThread(void) {
  return Clone(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_SYSVSEM | SIGCHLD);
}
static pid_t CloneFiles(void) {
  return Clone(CLONE_FILES | CLONE_FS | SIGCHLD);
}
static pid_t CloneNoSignal(void) {
  return Clone(0);
}
static pid_t CloneVmNoSignal(void) {
  return Clone(CLONE_VM);
}
static pid_t CloneOtherSignal(void) {
  return Clone(SIGWINCH);
}
static pid_t CloneNewNames(void) {
  return Clone(CLONE_NEWNS | CLONE_NEWPID | SIGCHLD);
}

// The first child's child is this process's, too, by CLONE_PARENT or as that of a subreaper.
static pid_t CloneParent(void) {
  pid_t child = fork();
  if (child == 0) _exit(Clone(CLONE_PARENT | SIGCHLD) > 0 ? work(4) : 99);
  return child;
}
static pid_t Orphan(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_t child = fork();
  if (child == 0) _exit(fork() == 0 ? work(3) : work(4));
  return child;
}

static void* ExecSelf(void* unused) {
  (void)unused;
  execv("/proc/self/exe", as_child);
  _exit(99);
}
static pid_t ExecFromThread(void) {
  pid_t child = fork();
  if (child != 0) return child;
  pthread_t thread;
  pthread_create(&thread, NULL, ExecSelf, NULL);
  for (;;)
    pause();
}
static pid_t ExecOf(int fd) {
  pid_t child = fork();
  if (child != 0) return child;
  if (fd != kSelfFd) dup2(fd, kSelfFd);
  fexecve(kSelfFd, as_self_fd, environ);
  _exit(99);
}
static void CopySelf(int to) {
  char bytes[4096];
  int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  for (ssize_t got; (got = read(self, bytes, sizeof bytes)) > 0;) {
    if (write(to, bytes, got) != got) _exit(98);
  }
  close(self);
}
static pid_t ExecOfMemory(void) {
  int file = memfd_create("lives", 0);
  CopySelf(file);
  pid_t child = ExecOf(file);
  close(file);
  return child;
}
// Written, then opened for reading only: a file that is open for writing is not run (ETXTBSY).
static pid_t ExecOfFile(mode_t mode, int keep) {
  char path[sizeof copy];
  memcpy(path, copy, sizeof copy);
  int file = mkostemp(path, O_CLOEXEC);
  CopySelf(file);
  if (fchown(file, geteuid() == 0 ? 65534 : geteuid(), -1) != 0 || fchmod(file, mode) != 0)
    return -1;
  close(file);
  file = open(path, O_RDONLY);
  if (!keep) unlink(path);
  pid_t child = ExecOf(file);
  close(file);
  if (keep) {
    siginfo_t ended;
    waitid(P_PID, child, &ended, WEXITED | WNOWAIT);
    unlink(path);
  }
  return child;
}
static pid_t ExecOfDeleted(void) {
  return ExecOfFile(0755, 0);
}
static pid_t ExecOfSetuid(void) {
  return ExecOfFile(04755, 1);
}

static void* OutliveLeader(void* leader) {
  pthread_join(*(pthread_t*)leader, NULL);
  _exit(work(5));
}
static pid_t LeaderFirst(void) {
  pid_t child = fork();
  if (child != 0) return child;
  static pthread_t leader, thread;
  leader = pthread_self();
  pthread_create(&thread, NULL, OutliveLeader, &leader);
  pthread_exit(NULL);
}
static void* EndThread(void* unused) {
  (void)unused;
  syscall(SYS_exit, work(6));
  return NULL;
}
static pid_t ThreadByThread(void) {  // nobody calls exit_group(2)
  pid_t child = fork();
  if (child != 0) return child;
  pthread_t thread;
  for (int i = 0; i < 3; ++i)
    pthread_create(&thread, NULL, EndThread, NULL);
  syscall(SYS_exit, work(6));
  return 0;
}

static pid_t DieOf(int number) {
  pid_t child = fork();
  if (child != 0) return child;
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  work(0);
  raise(number);
  _exit(99);
}
static pid_t Segv(void) {
  return DieOf(SIGSEGV);
}
static pid_t Trap(void) {
  return DieOf(SIGTRAP);
}
static pid_t Abort(void) {
  return DieOf(SIGABRT);
}
static pid_t Kill(void) {
  return DieOf(SIGKILL);
}
static pid_t RealTime(void) {
  return DieOf(SIGRTMIN + 3);
}
static pid_t StopAndGo(void) {
  sigset_t end;  // without which it could be over before anybody asks whether it goes on
  sigemptyset(&end);
  sigaddset(&end, SIGUSR1);
  sigprocmask(SIG_BLOCK, &end, NULL);
  pid_t child = fork();
  if (child != 0) return child;
  raise(SIGSTOP);
  sigwaitinfo(&end, NULL);
  _exit(work(3));
}
static pid_t KilledAtOnce(void) {
  pid_t child = fork();
  if (child == 0)
    for (;;)
      pause();
  kill(child, SIGKILL);
  return child;
}

static const struct {
  const char* name;
  pid_t (*begin)(void);
  int children;
  int shares_memory;
} ways[] = {{"fork", Fork, 1},
            {"vfork", Vfork, 1, 1},
            {"vfork exec", VforkExec, 1},
            {"spawn", Spawn, 1},
            {"clone vm", CloneVm, 1, 1},
            {"clone vm vfork", CloneVmVfork, 1, 1},
            {"clone all but thread", CloneAllButThread, 1, 1},
            {"clone files", CloneFiles, 1},
            {"clone without signal", CloneNoSignal, 1},
            {"clone vm without signal", CloneVmNoSignal, 1, 1},
            {"clone other signal", CloneOtherSignal, 1},
            {"clone namespaces", CloneNewNames, 1},
            {"clone parent", CloneParent, 2},
            {"orphan", Orphan, 2},
            {"exec from a thread", ExecFromThread, 1},
            {"exec of memory", ExecOfMemory, 1},
            {"exec of a deleted file", ExecOfDeleted, 1},
            {"exec of a setuid file", ExecOfSetuid, 1},
            {"leader first", LeaderFirst, 1},
            {"thread by thread", ThreadByThread, 1},
            {"segv", Segv, 1},
            {"trap", Trap, 1},
            {"abort", Abort, 1},
            {"kill", Kill, 1},
            {"real time", RealTime, 1},
            {"stop and go", StopAndGo, 1},
            {"killed at once", KilledAtOnce, 1}};

static int Compare(const void* left, const void* right) {
  return *(const int*)left - *(const int*)right;
}

// Everything waitid(2) says until that many children have ended; those that end together in any
// order.
static void Reap(int children, pid_t first) {
  int ends[2] = {0, 0}, ended = 0;
  while (ended < children) {
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, __WALL | WEXITED | WSTOPPED | WCONTINUED) != 0) break;
    if (info.si_code == CLD_STOPPED) {
      printf(" stopped %d", info.si_status);
      kill(first, SIGCONT);
    } else if (info.si_code == CLD_CONTINUED) {
      printf(" continued %d", info.si_status);
      kill(first, SIGUSR1);
    } else {
      ends[ended++] = info.si_uid << 16 | info.si_code << 8 | info.si_status;
    }
  }
  qsort(ends, ended, sizeof *ends, Compare);
  for (int i = 0; i < ended; ++i)
    printf(" %#x", ends[i]);
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) return MapCounter() == 0 ? work(8) : 97;
  if (argc > 1 && strcmp(argv[1], "named") == 0) return geteuid() == 65534 ? 10 : 9;
  int counter = memfd_create("calls", 0);
  if (ftruncate(counter, 4096) != 0 || dup2(counter, kCounterFd) < 0 || MapCounter() != 0) return 1;
  WaitIfTold(argc, argv);
  unsigned shared = 0;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    shared += work(1);
    printf("%s:", ways[i].name);
    fflush(stdout);
    unsigned before = *calls;
    Reap(ways[i].children, ways[i].begin());
    if (ways[i].shares_memory) shared += *calls - before;
    puts("");
  }
  printf("more children: %d\n", waitpid(-1, NULL, __WALL | WNOHANG) != -1);
  printf("shared %u\ncalls %u\n", shared, *calls);
  return 0;
}

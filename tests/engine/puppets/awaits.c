// awaits HOW WHEN: a program all of whose threads block SIGTRAP, which is taken by one that waits for
// it, while the others call work() without end. HOW: sigwait or signalfd in a thread of its own, or
// own: the first thread itself, which calls work() in between. WHEN the signal comes to be blocked:
// first, or later, when a line has been read. Each line with a number sends itself as many; says how
// many came as they were sent, in the end how many threads block the signal. "raise N": the first
// thread sends itself as many, calls work() while they wait, and takes them. "end" ends it.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/types.h>
#include <unistd.h>

enum { kThreads = 3 };

static sigset_t trap;
static int descriptor = -1;
static atomic_int taken, blocking, ending;

__attribute__((noipa)) void work(void) { __asm__ volatile("" ::: "memory"); }

static void* call(void* unused) {
  while (!ending) work();
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, NULL, &mask);
  blocking += sigismember(&mask, SIGTRAP);
  return unused;
}

static int is_as_sent(int number, int code, pid_t pid) {
  return number == SIGTRAP && code == SI_USER && pid == getpid();
}

static void* take(void* unused) {
  while (1) {
    struct signalfd_siginfo read_info;
    siginfo_t info;
    if (descriptor < 0) {
      if (sigwaitinfo(&trap, &info) < 0) continue;
      taken += is_as_sent(info.si_signo, info.si_code, info.si_pid);
    } else if (read(descriptor, &read_info, sizeof read_info) == sizeof read_info) {
      taken += is_as_sent((int)read_info.ssi_signo, read_info.ssi_code, (pid_t)read_info.ssi_pid);
    }
    work();
  }
  return unused;
}

static int has_come(int count) {
  for (int i = 0; i < 10000 && taken < count; ++i) usleep(1000);
  return taken >= count;
}

static void take_one(void) {
  const struct timespec most = {10, 0};
  siginfo_t info;
  int number;
  for (int calls = 0; calls < 3; ++calls) work();
  while ((number = sigtimedwait(&trap, &info, &most)) < 0 && errno == EINTR) {
  }
  taken += number > 0 && is_as_sent(info.si_signo, info.si_code, info.si_pid);
}

static int take_own(int count) {
  const struct timespec none = {0, 0};
  int came = 0;
  for (int i = 0; i < count; ++i) {
    raise(SIGTRAP);
    for (int calls = 0; calls < 10; ++calls) work();
    came += sigtimedwait(&trap, NULL, &none) == SIGTRAP;
    came -= sigtimedwait(&trap, NULL, &none) == SIGTRAP;
  }
  return came;
}

int main(int argc, char** argv) {
  char line[64];
  pthread_t threads[kThreads], taker;
  if (argc != 3) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  sigemptyset(&trap);
  sigaddset(&trap, SIGTRAP);
  const int first = strcmp(argv[2], "first") == 0;
  if (first) pthread_sigmask(SIG_BLOCK, &trap, NULL);
  printf("ready\n");
  if (!fgets(line, sizeof line, stdin)) return 1;
  if (!first) work(), pthread_sigmask(SIG_BLOCK, &trap, NULL);
  if (strcmp(argv[1], "signalfd") == 0) descriptor = signalfd(-1, &trap, 0);
  const int is_own = strcmp(argv[1], "own") == 0;
  if (!is_own && pthread_create(&taker, NULL, take, NULL) != 0) return 1;
  for (int i = 0; i < kThreads; ++i)
    if (pthread_create(&threads[i], NULL, call, NULL) != 0) return 1;
  printf("running\n");
  while (fgets(line, sizeof line, stdin) && strcmp(line, "end\n") != 0) {
    if (strncmp(line, "raise ", 6) == 0) {
      printf("%d came\n", take_own(atoi(line + 6)));
      continue;
    }
    const int count = atoi(line), before = taken;
    for (int i = 1; i <= count; ++i) {
      kill(getpid(), SIGTRAP);
      if (is_own) take_one();
      if (!has_come(before + i)) break;
    }
    printf("%d came\n", taken - before);
  }
  ending = 1;
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  printf("%d blocking\n", blocking);
  return 0;
}

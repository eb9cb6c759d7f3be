// Signals by every way in which a program can take them, while probed functions run: real-time signals
// of several senders keep their order and values, whether a handler, sigwaitinfo(2) or a signalfd
// takes them, and those that are blocked wait. queues COUNT [wait]
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"

enum { kSenders = 2, kWays = 4 };  // a handler, one on a stack of its own, sigwaitinfo, signalfd

static int count;
static unsigned long works;
static struct Way {
  unsigned long taken, sum, disorder;
  int last[kSenders];
} ways[kWays];

__attribute__((noipa)) unsigned long work(unsigned long n) {
  __atomic_add_fetch(&works, 1, __ATOMIC_RELAXED);
  return n * 2;
}

// Values are sender * count + number.
__attribute__((noipa)) void take(struct Way* way, int value) {
  int sender = value / count, number = value % count + 1;
  way->disorder += number <= way->last[sender];
  way->last[sender] = number;
  way->sum += work((unsigned long)value);
  __atomic_add_fetch(&way->taken, 1, __ATOMIC_SEQ_CST);
}

static void OnSignal(int signal, siginfo_t* info, void* context) {
  (void)context;
  take(&ways[signal - SIGRTMIN], info->si_value.sival_int);
}

// Not more than fits into the queue (RLIMIT_SIGPENDING), whatever it is.
__attribute__((noipa)) void send(int way, int value) {
  union sigval word = {.sival_int = value};
  while (sigqueue(getpid(), SIGRTMIN + way, word) != 0) {
    if (errno != EAGAIN) abort();
    usleep(100);
  }
}

static void* Sender(void* number) {
  int sender = (int)(long)number;
  for (int i = 0; i < count; ++i) {
    for (int way = 0; way < kWays; ++way) send(way, sender * count + i);
  }
  return NULL;
}

static int AllTaken(const struct Way* way) {
  return __atomic_load_n(&way->taken, __ATOMIC_SEQ_CST) == (unsigned long)count * kSenders;
}

static void* Waiter(void* unused) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGRTMIN + 2);
  siginfo_t info;
  while (!AllTaken(&ways[2])) {
    if (sigwaitinfo(&wanted, &info) < 0) abort();
    take(&ways[2], info.si_value.sival_int);
  }
  return unused;
}

static void* Reader(void* unused) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGRTMIN + 3);
  int fd = signalfd(-1, &wanted, 0);
  struct signalfd_siginfo info;
  while (!AllTaken(&ways[3])) {
    if (read(fd, &info, sizeof info) != sizeof info) abort();
    take(&ways[3], info.ssi_int);
  }
  return unused;
}

static void BlockAll(int how) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < kWays; ++i) sigaddset(&set, SIGRTMIN + i);
  pthread_sigmask(how, &set, NULL);
}

int main(int argc, char** argv) {
  count = argc > 1 ? atoi(argv[1]) : 100;
  WaitIfTold(argc, argv);
  BlockAll(SIG_BLOCK);
  pthread_t senders[kSenders], waiter, reader;
  pthread_create(&waiter, NULL, Waiter, NULL);
  pthread_create(&reader, NULL, Reader, NULL);
  for (long i = 0; i < kSenders; ++i) pthread_create(&senders[i], NULL, Sender, (void*)i);
  // Each handler holds off the other's signal: a way has one taker at a time, and order means
  // something.
  struct sigaction action = {.sa_sigaction = OnSignal, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaddset(&action.sa_mask, SIGRTMIN), sigaddset(&action.sa_mask, SIGRTMIN + 1);
  sigaction(SIGRTMIN, &action, NULL);
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  sigaltstack(&stack, NULL);
  action.sa_flags |= SA_ONSTACK;
  sigaction(SIGRTMIN + 1, &action, NULL);
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGRTMIN), sigaddset(&handled, SIGRTMIN + 1);
  pthread_sigmask(SIG_UNBLOCK, &handled, NULL);
  while (!AllTaken(&ways[0]) || !AllTaken(&ways[1])) work(1);
  for (int i = 0; i < kSenders; ++i) pthread_join(senders[i], NULL);
  pthread_join(waiter, NULL);
  pthread_join(reader, NULL);
  for (int i = 0; i < kWays; ++i) {
    printf("taken %lu sum %lu disorder %lu\n", ways[i].taken, ways[i].sum, ways[i].disorder);
  }
  fprintf(stderr, "works %lu\n", works);
  return 0;
}

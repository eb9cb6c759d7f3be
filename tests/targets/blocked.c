// Threads parked in system calls. A tracer that stops them must not be seen: each call has to end
// with what the program itself brings about, never with EINTR. blocked [wait] (a line releases it)
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "gate.h"

static int pipes[4][2];
static uint32_t futex_word;
static int timeout_ms = 20000;

static long Epoll(void) {
  struct epoll_event event = {.events = EPOLLIN};
  int epoll = epoll_create1(0);
  epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0][0], &event);
  return epoll_wait(epoll, &event, 1, timeout_ms);
}
static long Poll(void) {
  struct pollfd fd = {pipes[1][0], POLLIN, 0};
  return poll(&fd, 1, timeout_ms);
}
static long Select(void) {
  fd_set set;
  FD_ZERO(&set);
  FD_SET(pipes[2][0], &set);
  struct timeval limit = {20, 0};
  return select(pipes[2][0] + 1, &set, NULL, NULL, &limit);
}
static long Read(void) {
  char byte;
  return read(pipes[3][0], &byte, 1);
}
static long Futex(void) {
  struct timespec limit = {20, 0};
  return syscall(SYS_futex, &futex_word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
}
static long Sleep(void) {
  struct timespec time = {1, 500000000};
  return nanosleep(&time, NULL);
}
static long Signal(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  struct timespec limit = {20, 0};
  return sigtimedwait(&set, NULL, &limit);
}

static struct Case { const char* name; long (*run)(void); long result; int error; } cases[] = {
    {"epoll_wait", Epoll, 0, 0}, {"poll", Poll, 0, 0},         {"select", Select, 0, 0},
    {"read", Read, 0, 0},        {"futex", Futex, 0, 0},       {"nanosleep", Sleep, 0, 0},
    {"sigtimedwait", Signal, 0, 0},
};
enum { kCases = sizeof cases / sizeof *cases };

static void* Run(void* argument) {
  struct Case* one = argument;
  errno = 0;
  one->result = one->run();
  one->error = errno;
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[kCases];
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  for (int i = 0; i < 4; ++i) {
    if (pipe(pipes[i]) != 0) return 1;
  }
  for (int i = 0; i < kCases; ++i) pthread_create(&threads[i], NULL, Run, &cases[i]);
  WaitIfTold(argc, argv);
  for (int i = 0; i < 4; ++i) {
    if (write(pipes[i][1], "x", 1) != 1) return 1;
  }
  __atomic_store_n(&futex_word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &futex_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
  pthread_kill(threads[kCases - 1], SIGUSR2);
  for (int i = 0; i < kCases; ++i) {
    pthread_join(threads[i], NULL);
    printf("%s %ld %d\n", cases[i].name, cases[i].result, cases[i].error);
  }
  return 0;
}

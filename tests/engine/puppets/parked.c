// Threads that wait in a system call whose instruction has a name. "read N", "epoll N": N threads
// wait so, prints "parked"; the next line gives each what it waits for, and prints how many of the
// calls did what they must. "end": ends.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kMost = 16 };

// Five bytes, the last two of which are the system call's.
long call(long number, long fd, void* buffer, long size, long timeout);
__asm__(
    ".text\n.globl call\n.type call,@function\ncall:\n"
    "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %r8,%r10\n"
    ".globl before_call\n.type before_call,@function\nbefore_call:\nmov %rcx,%rdx\n"
    ".globl the_call\n.type the_call,@function\nthe_call:\nsyscall\nret\n"
    ".size call,.-call\n");

static int pipes[kMost][2], polls[kMost];
static atomic_int waiting;
static int reads;

static void* park(void* number) {
  const long i = (long)number;
  char byte = 0;
  struct epoll_event event = {0};
  atomic_fetch_add(&waiting, 1);
  if (reads) return (void*)(long)(call(SYS_read, pipes[i][0], &byte, 1, 0) == 1 && byte == 'w');
  return (void*)(long)(call(SYS_epoll_wait, polls[i], &event, 1, -1) == 1);
}

static long run(int count) {
  pthread_t threads[kMost];
  char line[64];
  long right = 0;
  waiting = 0;
  for (long i = 0; i < count; ++i) {
    if (pipe(pipes[i]) != 0) return -1;
    struct epoll_event wanted = {.events = EPOLLIN};
    polls[i] = epoll_create1(0);
    epoll_ctl(polls[i], EPOLL_CTL_ADD, pipes[i][0], &wanted);
    pthread_create(&threads[i], NULL, park, (void*)i);
  }
  while (waiting < count)
    usleep(100);
  printf("parked\n");
  if (!fgets(line, sizeof line, stdin)) return -1;
  for (int i = 0; i < count; ++i) {
    void* result = NULL;
    if (write(pipes[i][1], "w", 1) != 1) return -1;
    pthread_join(threads[i], &result);
    right += (long)result;
    close(pipes[i][0]), close(pipes[i][1]), close(polls[i]);
  }
  return right;
}

int main(void) {
  char line[64], word[16];
  int count = 0;
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    if (sscanf(line, "%15s %d", word, &count) != 2 || count > kMost) break;
    reads = strcmp(word, "read") == 0;
    printf("%ld\n", run(count));
  }
  return 0;
}

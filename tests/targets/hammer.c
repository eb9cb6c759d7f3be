// hammer FILE THREADS [handler|gentle]: threads call probed functions without end, check each
// answer and count in FILE, two words each: calls, wrong answers. Ends with its standard input.
// gentle: sleeps after each round. handler: has a SIGTRAP handler of its own; for each byte that it
// reads, one more thread calls a hundred times, sends itself the signal and runs into an int3.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct count {
  volatile uint64_t calls, wrong;
};
static struct count* counts;
static volatile sig_atomic_t traps;

__attribute__((noipa)) uint64_t twice(uint64_t n) {
  __asm__ volatile("" ::: "memory");
  return n * 2;
}

__attribute__((noipa)) uint64_t add(const uint64_t* left, const uint64_t* right) {
  __asm__ volatile("push %%rax\n\tpop %%rax" ::: "memory");
  return *left + *right;
}

__attribute__((noipa)) uint64_t sum(uint64_t depth) {
  return depth == 0 ? 0 : depth + sum(depth - 1);
}

// A push, which is emulated, and a popf, whose copy takes a second trap.
uint64_t kept(uint64_t n);
__asm__(
    ".globl kept\n.type kept, @function\n"
    "kept: push %rdi\n\tpushfq\n"
    ".globl kept_flags\n.type kept_flags, @function\n"
    "kept_flags: popfq\n\tpop %rax\n\tret\n");

static void call_all(struct count* count) {
  uint64_t n = count->calls, two = 2;
  count->wrong += twice(n) != n * 2;
  count->wrong += add(&n, &two) != n + 2;
  count->wrong += kept(n) != n;
  count->wrong += sum(n % 8) != (n % 8) * (n % 8 + 1) / 2;
  ++count->calls;
}

static void* hammer(void* count) {
  while (1)
    call_all(count);
  return NULL;
}

static void* hammer_gently(void* count) {
  while (1) {
    call_all(count);
    usleep(500);
  }
  return NULL;
}

static void on_trap(int signal) {
  (void)signal;
  ++traps;
}

static int answer_bytes(struct count* count) {
  char byte;
  while (read(0, &byte, 1) == 1) {
    for (int i = 0; i < 100; ++i)
      call_all(count);
    raise(SIGTRAP);
    __asm__ volatile("int3");
    printf("calls %llu wrong %llu traps %d\n", (unsigned long long)count->calls,
           (unsigned long long)count->wrong, (int)traps);
    fflush(stdout);
  }
  return 0;
}

int main(int argc, char** argv) {
  int threads = argc > 2 ? atoi(argv[2]) : 0;
  int file = argc > 2 ? open(argv[1], O_RDWR) : -1;
  counts = mmap(NULL, sizeof *counts * (threads + 1), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (counts == MAP_FAILED) return 2;
  int gentle = argc > 3 && strcmp(argv[3], "gentle") == 0;
  int handles = argc > 3 && strcmp(argv[3], "handler") == 0;
  if (handles) signal(SIGTRAP, on_trap);
  puts("ready");
  fflush(stdout);
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, gentle ? hammer_gently : hammer, &counts[i]) != 0) return 2;
  }
  if (handles) return answer_bytes(&counts[threads]);
  char byte;
  while (read(0, &byte, 1) == 1) {
  }
  return 0;
}

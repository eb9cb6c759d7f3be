// The measured program: for every line on stdin it calls one function CALLS times and prints
// "calls elapsed_ns". usage: hot CALLS [hot|stepped] [THREADS]
// With THREADS each thread makes CALLS / THREADS calls.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMaxThreads = 256 };

static volatile long sink;
static long calls_of_a_thread;
static void (*function)(unsigned long number, const char* text);
static pthread_barrier_t start_line, finish_line;

__attribute__((noinline, noclone)) void hot(unsigned long number, const char* text) {
  sink += (long)number + text[0];
}

// popf is the one instruction that can be neither emulated nor boosted: it takes a second trap.
void stepped(unsigned long number, const char* text);
__asm__(
    ".text\n"
    ".globl stepped, stepped_popf\n"
    ".type stepped, @function\n"
    ".type stepped_popf, @function\n"
    "stepped:\n"
    "  pushfq\n"
    "stepped_popf:\n"
    "  popfq\n"
    "  ret\n");

static long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static void Call(void) {
  for (long i = 0; i < calls_of_a_thread; i++)
    function((unsigned long)i, "hello world");
}

static void* Work(void* unused) {
  (void)unused;
  for (;;) {
    pthread_barrier_wait(&start_line);
    Call();
    pthread_barrier_wait(&finish_line);
  }
  return NULL;
}

static int StartThreads(long threads) {
  pthread_barrier_init(&start_line, NULL, (unsigned)threads);
  pthread_barrier_init(&finish_line, NULL, (unsigned)threads);
  for (long i = 1; i < threads; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, Work, NULL) != 0) return 0;
  }
  return 1;
}

int main(int argc, char** argv) {
  long calls = argc > 1 ? atol(argv[1]) : 1000;
  long threads = argc > 3 ? atol(argv[3]) : 1;
  function = argc > 2 && strcmp(argv[2], "stepped") == 0 ? stepped : hot;
  if (threads < 1 || threads > kMaxThreads) return 2;
  calls_of_a_thread = calls / threads;
  if (!StartThreads(threads)) return 1;
  char line[16];
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    pthread_barrier_wait(&start_line);
    long start = Now();
    Call();
    pthread_barrier_wait(&finish_line);
    printf("%ld %ld\n", calls_of_a_thread * threads, Now() - start);
    fflush(stdout);
  }
  return 0;
}

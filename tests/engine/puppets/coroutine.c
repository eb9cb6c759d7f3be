// "N": N coroutines are suspended inside work() by this thread and resumed by another; prints the
// sum of what work() returned.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t first, second, coroutine;
static ucontext_t* resumer;
static char stack[65536];
static long sum;

__attribute__((noinline, noipa)) long work(long x) {
  swapcontext(&coroutine, resumer);
  return x;
}

static void body(int x) {
  sum += work(x);
  swapcontext(&coroutine, resumer);
}

static void* resume(void* unused) {
  resumer = &second;
  swapcontext(&second, &coroutine);
  return unused;
}

static void run(int x) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  makecontext(&coroutine, (void (*)(void))body, 1, x);
  resumer = &first;
  swapcontext(&first, &coroutine);
  pthread_t thread;
  pthread_create(&thread, NULL, resume, NULL);
  pthread_join(thread, NULL);
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    sum = 0;
    for (int i = 1; i <= atoi(line); ++i) run(i);
    printf("%ld\n", sum);
  }
  return 0;
}

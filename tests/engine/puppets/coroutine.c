// "N": N coroutines are suspended inside work() by this thread and resumed by another; prints the
// sum of what work() returned. "-N": the first thread is one that has ended by then.
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

static void* enter(void* context) {
  resumer = context;
  swapcontext(resumer, &coroutine);
  return NULL;
}

static void enter_in_thread(ucontext_t* context) {
  pthread_t thread;
  pthread_create(&thread, NULL, enter, context);
  pthread_join(thread, NULL);
}

static void run(int x, int in_thread) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  makecontext(&coroutine, (void (*)(void))body, 1, x);
  if (in_thread) enter_in_thread(&first);
  else enter(&first);
  enter_in_thread(&second);
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    int number = atoi(line);
    sum = 0;
    for (int i = 1; i <= abs(number); ++i) run(i, number < 0);
    printf("%ld\n", sum);
  }
  return 0;
}

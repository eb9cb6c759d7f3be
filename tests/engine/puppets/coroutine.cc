// "N": N coroutines are suspended inside work() by this thread and resumed by another; prints the
// sum of what work() returned, or threw if the program was started with an argument. "-N": the
// first thread is one that has ended by then.
#include <pthread.h>
#include <ucontext.h>
#include <cstdio>
#include <cstdlib>

static ucontext_t first, second, coroutine;
static ucontext_t* resumer;
static char stack[65536];
static long sum;
static bool throws;

extern "C" __attribute__((noinline, noipa)) long work(long x) {
  swapcontext(&coroutine, resumer);
  if (throws) throw x;
  return x;
}

static void body(int x) {
  try {
    sum += work(x);
  } catch (long thrown) {
    sum += 1000 * thrown;
  }
  swapcontext(&coroutine, resumer);
}

static void* enter(void* context) {
  resumer = static_cast<ucontext_t*>(context);
  swapcontext(resumer, &coroutine);
  return nullptr;
}

static void enter_in_thread(ucontext_t* context) {
  pthread_t thread;
  pthread_create(&thread, nullptr, enter, context);
  pthread_join(thread, nullptr);
}

static void run(int x, bool in_thread) {
  getcontext(&coroutine);
  coroutine.uc_stack.ss_sp = stack;
  coroutine.uc_stack.ss_size = sizeof stack;
  makecontext(&coroutine, reinterpret_cast<void (*)()>(body), 1, x);
  if (in_thread)
    enter_in_thread(&first);
  else
    enter(&first);
  enter_in_thread(&second);
}

int main(int count, char**) {
  char line[64];
  throws = count > 1;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    int number = atoi(line);
    sum = 0;
    for (int i = 1; i <= abs(number); ++i)
      run(i, number < 0);
    printf("%ld\n", sum);
  }
  return 0;
}

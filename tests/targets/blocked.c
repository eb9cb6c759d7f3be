// A thread in each of many blocking system calls, and one that calls work all the time. A tracer that
// stops them, or is hit by the last, must not be seen: each call ends with what the program itself
// brings about. blocked [wait] (a line releases it)
#define _GNU_SOURCE
#include "blocking_calls.h"

#include "gate.h"

static struct Case {
  const struct BlockingCall* call;
  struct Means means;
  pthread_t thread;
  long prepared, result;
} cases[kCalls];
static int over;
static unsigned long works;

__attribute__((noipa)) void work(void) { ++works; }

static void* Work(void* unused) {
  while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
    work();
    usleep(200);
  }
  return unused;
}

static void* Run(void* argument) {
  struct Case* one = argument;
  one->result = one->call->wait(&one->means);
  __atomic_store_n(&one->means.ended, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void Start(struct Case* one, const struct BlockingCall* call) {
  one->call = call;
  one->prepared = call->prepare ? call->prepare(&one->means) : 0;
  if (one->prepared >= 0) pthread_create(&one->thread, NULL, Run, one);
  one->means.caller = one->thread;
}

static void End(struct Case* one) {
  if (one->prepared >= 0) {
    one->call->wake(&one->means);
    pthread_join(one->thread, NULL);
  }
  long result = one->prepared < 0 ? one->prepared : one->result;
  printf("%s %s", one->call->name, result == one->call->expected ? "ok" : "");
  if (result == kUnsupported) {
    printf("is not here");
  } else if (result != one->call->expected) {
    printf("%ld", result);
  }
  puts("");
}

int main(int argc, char** argv) {
  pthread_t worker;
  PrepareSignals();
  for (int i = 0; i < kCalls; ++i) Start(&cases[i], &kBlockingCalls[i]);
  pthread_create(&worker, NULL, Work, NULL);
  WaitIfTold(argc, argv);
  for (int i = 0; i < kCalls; ++i) End(&cases[i]);
  __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
  pthread_join(worker, NULL);
  fprintf(stderr, "works %lu\n", works);
  return 0;
}

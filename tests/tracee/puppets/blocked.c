// One thread in one blocking call. blocked CALL: prints "ready" and makes the call; a byte of input
// lets another thread end it. Prints "errors N" for what an untraced program would not see, or
// "unsupported" instead of "ready".
#include "tests/targets/blocking_calls.h"

static const struct BlockingCall* call;
static struct Means means;

static const struct BlockingCall* Find(const char* name) {
  for (int i = 0; i < kCalls; ++i) {
    if (strcmp(kBlockingCalls[i].name, name) == 0) return &kBlockingCalls[i];
  }
  return NULL;
}

static void* Waker(void* unused) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (poll(&input, 1, -1) != 1) {
  }
  call->wake(&means);
  return unused;
}

static int Say(const char* what, long number) {
  number >= 0 ? printf("%s %ld\n", what, number) : printf("%s\n", what);
  fflush(stdout);
  return 0;
}

int main(int argc, char** argv) {
  PrepareSignals();
  if (argc < 2 || (call = Find(argv[1])) == NULL) return 2;
  if (call->prepare != NULL && call->prepare(&means) < 0) return Say("unsupported", -1);
  means.caller = pthread_self();
  pthread_t waker;
  pthread_create(&waker, NULL, Waker, NULL);
  Say("ready", -1);
  long result = call->wait(&means);
  __atomic_store_n(&means.ended, 1, __ATOMIC_SEQ_CST);
  if (result == kUnsupported) return Say("errors", 0);
  pthread_join(waker, NULL);
  return Say("errors", result != call->expected);
}

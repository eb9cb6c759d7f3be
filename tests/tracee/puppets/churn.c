// Keeps making short-lived threads until its input ends. churn MAKERS: prints "ready ADDRESS" and, in
// the end, "calls TOTAL", each thread having called Probed() once.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long calls;
static atomic_int stop;

__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }

static void *CallOnce(void *unused) {
  Probed();
  atomic_fetch_add(&calls, 1);
  return unused;
}

static void *Make(void *unused) {
  while (!atomic_load(&stop)) {
    pthread_t ids[3];
    for (int i = 0; i < 3; ++i) pthread_create(&ids[i], NULL, CallOnce, NULL);
    for (int i = 0; i < 3; ++i) pthread_join(ids[i], NULL);
  }
  return unused;
}

int main(int argc, char **argv) {
  int makers = argc > 1 ? atoi(argv[1]) : 4;
  pthread_t ids[64];
  for (int i = 0; i < makers; ++i) pthread_create(&ids[i], NULL, Make, NULL);
  printf("ready %p\n", (void *)Probed);
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  atomic_store(&stop, 1);
  for (int i = 0; i < makers; ++i) pthread_join(ids[i], NULL);
  printf("calls %ld\n", atomic_load(&calls));
  return 0;
}

// Threads that call one function as fast as they can, each counting its own calls.
// counter THREADS CALLS: prints "ready ADDRESS" and the pid's threads wait for a byte on stdin;
// then each makes CALLS calls (0: until a second byte); prints "calls TOTAL".
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_long total;
static atomic_int stop;
static int go;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;

// The test puts an int3 on the nop.
__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }

static void *Run(void *argument) {
  long calls = *(long *)argument, done = 0;
  pthread_mutex_lock(&mutex);
  while (!go) pthread_cond_wait(&started, &mutex);
  pthread_mutex_unlock(&mutex);
  for (; calls == 0 ? !atomic_load(&stop) : done < calls; ++done) Probed();
  atomic_fetch_add(&total, done);
  return NULL;
}

int main(int argc, char **argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 1;
  long calls = argc > 2 ? atol(argv[2]) : 1000;
  pthread_t ids[2000];
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], &attributes, Run, &calls);
  printf("ready %p\n", (void *)Probed);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  pthread_mutex_lock(&mutex);
  go = 1;
  pthread_cond_broadcast(&started);
  pthread_mutex_unlock(&mutex);
  if (calls == 0 && read(0, &byte, 1) != 1) return 1;
  atomic_store(&stop, 1);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  printf("calls %ld\n", atomic_load(&total));
  return 0;
}

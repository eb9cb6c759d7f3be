// Dies below some calls, while another thread waits below as many: dumps abort|segv|trap [wait]
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#include "gate.h"

static volatile int* volatile nowhere;
static sem_t waits;

__attribute__((noipa)) long descend(long depth, char how) {
  if (depth == 0 && how == 'w') sem_post(&waits), pause();
  if (depth == 0 && how == 'a') abort();
  if (depth == 0 && how == 't') __asm__ volatile("int3");
  if (depth == 0) return *nowhere;
  long below = descend(depth - 1, how);
  __asm__ volatile("" ::: "memory");
  return below + 1;
}

static void* wait_below(void* unused) {
  descend(5, 'w');
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  WaitIfTold(argc, argv);
  sem_init(&waits, 0, 0);
  if (pthread_create(&thread, NULL, wait_below, NULL) != 0) return 2;
  sem_wait(&waits);
  return (int)descend(8, argc > 1 ? argv[1][0] : 's');
}

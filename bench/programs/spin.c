// How long it was stopped, measured by the program itself: N threads, of which one looks at the clock
// all the time and keeps the longest time between two looks; the others sleep and work in turn.
// spin THREADS. For every line of input it prints "longest second-longest" in ns since the last.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long works;

__attribute__((noinline, noclone)) void work(void) {
  __atomic_add_fetch(&works, 1, __ATOMIC_RELAXED);
}

static void* Work(void* unused) {
  for (;;) {
    usleep(20000);
    work();
  }
  return unused;
}

static long Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

static int HasLine(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) == 1;
}

// Looks at its input every now and then, out of the time that counts.
static void Spin(long* longest, long* second) {
  *longest = *second = 0;
  for (;;) {
    long last = Now();
    for (int i = 0; i < 20000; i++) {
      long now = Now();
      if (now - last > *second) *second = now - last;
      if (*second > *longest) {
        long swapped = *longest;
        *longest = *second;
        *second = swapped;
      }
      last = now;
    }
    if (HasLine()) return;
  }
}

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (int i = 1; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, Work, NULL) != 0) return 1;
  }
  char line[16];
  long longest, second;
  printf("ready\n");
  fflush(stdout);
  do {
    Spin(&longest, &second);
    if (!fgets(line, sizeof line, stdin)) return 0;
    work();
    printf("%ld %ld\n", longest, second);
    fflush(stdout);
  } while (1);
}

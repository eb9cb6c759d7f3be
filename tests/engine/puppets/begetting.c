// "N": N threads beget children without a pause until the next line comes; each child calls work()
// twice and ends. Prints how many there were, and how many did not end as they must.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMost = 16, kStatus = 9 };

static atomic_ulong children, wrong;
static atomic_int resting;

__attribute__((noipa)) long work(long number) {
  __asm__ volatile("" ::: "memory");
  return 2 * number + 1;
}

static void* beget(void* unused) {
  while (!resting) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) _exit((int)work(work(1)) + 2);
    if (child > 0) waitpid(child, &status, 0);
    atomic_fetch_add(&children, 1);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kStatus) atomic_fetch_add(&wrong, 1);
  }
  return unused;
}

int main(void) {
  char line[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    pthread_t threads[kMost];
    const int count = atoi(line) < kMost ? atoi(line) : kMost;
    resting = 0;
    for (int i = 0; i < count; ++i)
      pthread_create(&threads[i], NULL, beget, NULL);
    printf("running\n");
    if (!fgets(line, sizeof line, stdin)) return 1;
    resting = 1;
    for (int i = 0; i < count; ++i)
      pthread_join(threads[i], NULL);
    printf("%lu %lu\n", children, wrong);
  }
  return 0;
}

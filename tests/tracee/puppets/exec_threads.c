// Makes COUNT threads, of which the last makes the process execute itself again, and so on until the
// input is closed. exec_threads COUNT: the first image prints "ready".
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *self, *count;

static void *Idle(void *unused) {
  pause();
  return unused;
}

static void *ExecSelf(void *unused) {
  execl(self, self, count, "again", NULL);
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  self = argv[0];
  count = argv[1];
  if (argc == 2) {
    printf("ready\n");
    fflush(stdout);
  }
  struct pollfd input = {.fd = 0};
  if (poll(&input, 1, 0) == 1) return 0;
  pthread_t id;
  for (int i = 1; i < atoi(count); ++i) pthread_create(&id, NULL, Idle, NULL);
  pthread_create(&id, NULL, ExecSelf, NULL);
  pause();
  return 1;
}

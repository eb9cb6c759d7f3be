// N threads that sleep and work in turn; prints "ready" when all run, ends on end of stdin.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void* Work(void* unused) {
  for (;;)
    usleep(20000);
  return unused;
}

int main(int argc, char** argv) {
  int count = argc > 1 ? atoi(argv[1]) : 10;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 * 1024);
  for (int i = 1; i < count; i++) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, Work, NULL) != 0) return 1;
  }
  printf("ready\n");
  fflush(stdout);
  return getchar() == EOF ? 0 : 0;
}

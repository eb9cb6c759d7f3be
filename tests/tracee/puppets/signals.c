// Counts SIGRTMIN: prints "ready", reads until the end of its input, then prints
// "signals COUNT SUM QUEUED": the sum of the values and how many were sent by sigqueue().
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t count, sum, queued;

static void Handle(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)context;
  ++count;
  sum += info->si_value.sival_int;
  queued += info->si_code == SI_QUEUE;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = Handle, .sa_flags = SA_SIGINFO | SA_RESTART};
  sigaction(SIGRTMIN, &action, NULL);
  printf("ready\n");
  fflush(stdout);
  char byte;
  while (read(0, &byte, 1) > 0) {
  }
  printf("signals %d %d %d\n", (int)count, (int)sum, (int)queued);
  return 0;
}

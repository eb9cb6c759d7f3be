// trapper CALLS: prints "ready ADDRESS", waits for a byte on stdin, calls one function, and prints
// how often it got a SIGTRAP from a breakpoint there: "traps N".
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t traps;

// The test puts an int3 on the nop.
__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }

static void OnTrap(int signal, siginfo_t *info, void *context) {
  (void)signal;
  (void)context;
  if (info->si_code == SI_KERNEL) ++traps;
}

int main(int argc, char **argv) {
  int calls = argc > 1 ? atoi(argv[1]) : 1;
  struct sigaction action = {.sa_sigaction = OnTrap, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  printf("ready %p\n", (void *)Probed);
  fflush(stdout);
  char byte;
  if (read(0, &byte, 1) != 1) return 1;
  for (int i = 0; i < calls; ++i) Probed();
  printf("traps %d\n", (int)traps);
  return 0;
}

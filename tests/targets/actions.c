// actions [handler]: with a handler for SIGTRAP from the beginning or none, and with a byte for each, saves the action for SIGTRAP and sets a handler that calls what it
// has saved (s), sends itself the signal (c), puts back what it has saved (r), runs into an int3
// (t).
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct sigaction saved;
static volatile sig_atomic_t chained, firsts;

__attribute__((noipa)) int work(int n) {
  __asm__ volatile("" ::: "memory");
  return n + 1;
}

static void chain(int number, siginfo_t* info, void* context) {
  ++chained;
  if (saved.sa_flags & SA_SIGINFO) {
    saved.sa_sigaction(number, info, context);
  } else if (saved.sa_handler != SIG_DFL && saved.sa_handler != SIG_IGN) {
    saved.sa_handler(number);
  }
}

static void first(int number) {
  firsts += number == SIGTRAP;
}

int main(int argc, char** argv) {
  struct sigaction own = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO};
  (void)argv;
  if (argc > 1) signal(SIGTRAP, first);
  puts("ready");
  fflush(stdout);
  char byte;
  for (int n = 0; read(0, &byte, 1) == 1; n = work(n)) {
    if (byte == 's') sigaction(SIGTRAP, &own, &saved);
    if (byte == 'c') raise(SIGTRAP);
    if (byte == 'r') sigaction(SIGTRAP, &saved, NULL);
    if (byte == 't') __asm__ volatile("int3");
    printf("%c chained %d first %d\n", byte, (int)chained, (int)firsts);
    fflush(stdout);
  }
  return 0;
}

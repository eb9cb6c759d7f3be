// Calls that tempt whoever changes return addresses or the first bytes of functions: wrappers of a few
// bytes, nested functions that are called through code on the stack, handlers on a stack of their own
// that call what they have interrupted, and leave it by a jump. awkward ROUNDS
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBED __attribute__((noipa))

static unsigned long wrong;

PROBED long inner(long n) { return 2 * n + 1; }

// Ten bytes: alignment of the stack, a call, and back; nine that only jump; five.
long wrap(long n), hop(long n), skip(long n);
__asm__(
    ".text\n.globl wrap\n.type wrap, @function\nwrap:\n"
    "push %rax\n\tcall inner\n\tpop %rdx\n\tnop\n\tnop\n\tret\n.size wrap, .-wrap\n"
    ".globl hop\n.type hop, @function\nhop:\n"
    "lea 1(%rdi), %rdi\n\tjmp inner\n.size hop, .-hop\n"
    ".globl skip\n.type skip, @function\nskip: jmp inner\n.size skip, .-skip\n");

static void Wrappers(long n) {
  wrong += wrap(n) != 2 * n + 1;
  wrong += hop(n) != 2 * n + 3;
  wrong += skip(n) != 2 * n + 1;
}

PROBED long apply(long (*function)(long), long n) { return function(n) + function(n + 1); }

// The address of a nested function is that of a few instructions on the stack, which load what it has
// of its surroundings into a register that no other call uses.
PROBED long nested(long base) {
  long seen = 0;
  __attribute__((noinline)) long add(long n) {
    seen += n;
    return base + n;
  }
  long sum = apply(add, 5);
  if (base > 0) sum += nested(base - 1);
  return sum + seen;
}

static void Nested(long n) {
  long expected = 0;
  for (long base = 0; base <= n % 7; ++base) expected += 2 * base + 22;
  wrong += nested(n % 7) != expected;
}

static volatile long handled;
static sigjmp_buf back;
static volatile int jumps;

PROBED void on_signal(int number) {
  (void)number;
  handled += inner(3);
  wrong += wrap(handled) != 2 * handled + 1;
  if (jumps) siglongjmp(back, 1);
}

PROBED long interrupted(long depth) {
  if (depth == 0) raise(SIGUSR1);
  return depth == 0 ? inner(1) : interrupted(depth - 1) + 1;
}

static void Handlers(long n) {
  jumps = n % 2 == 1;
  if (sigsetjmp(back, 1) == 0) {
    long result = interrupted(n % 5);
    wrong += jumps || result != 3 + n % 5;
  } else {
    wrong += !jumps;
  }
}

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? atol(argv[1]) : 100;
  stack_t stack = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 1;
  for (volatile long n = 0; n < rounds; ++n) {
    Wrappers(n);
    Nested(n);
    Handlers(n);
  }
  printf("rounds %ld handled %ld wrong %lu\n", rounds, handled, wrong);
  return wrong != 0;
}

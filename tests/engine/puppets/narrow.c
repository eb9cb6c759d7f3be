// Functions with no room for a jump of five bytes. For each line "N": calls each of them N times
// while a timer interrupts as fast as it can, then prints how often it found something else than
// this program's instructions interrupted, and the sum of what was returned.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

// padded: three bytes, then padding.
// entered: a loop begins at its third byte; there is padding near for a jump on the way.
// packed: three bytes, the next function follows at once, and no padding is near: e9, one free
// byte, and c3 90 74, which leads 0x7490c300 bytes ahead, behind what the heap may get.
__asm__(
    ".text\n"
    ".macro function name\n .globl \\name\n .type \\name, @function\n \\name:\n .endm\n"
    ".macro end name\n .size \\name, . - \\name\n .endm\n"
    ".p2align 4\n"
    "function padded\n mov %edi, %eax\n ret\n end padded\n"
    ".fill 29, 1, 0xcc\n"
    "function entered\n xor %eax, %eax\n 1: inc %eax\n dec %edi\n jne 1b\n ret\n end entered\n"
    "function filler_before\n .rept 100\n xor %eax, %eax\n .endr\n ret\n end filler_before\n"
    "function packed\n mov %edi, %eax\n ret\n end packed\n"
    "function follower\n nop\n je 2f\n 2: mov %edi, %eax\n ret\n end follower\n"
    "function filler_after\n .rept 100\n xor %eax, %eax\n .endr\n ret\n end filler_after\n");

extern const char __executable_start, etext;
int padded(int), entered(int), packed(int), follower(int), filler_before(int), filler_after(int);

static volatile long strange;
static volatile int in_call;

static void Interrupted(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  const char* ip = (const char*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  if (!in_call) return;
  const char *padding = (const char*)padded + 3, *padding_end = (const char*)entered;
  if (ip < &__executable_start || ip >= &etext || (ip >= padding && ip < padding_end)) ++strange;
}

static long CallAll(int number) {
  int (*functions[])(int) = {padded, entered, packed, follower};
  long sum = 0;
  in_call = 1;
  for (int i = 0; i < 4; ++i) sum += functions[i](number);
  in_call = 0;
  return sum;
}

int main(void) {
  struct sigaction action = {.sa_sigaction = Interrupted, .sa_flags = SA_SIGINFO | SA_RESTART};
  struct itimerval fast = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
  char line[64];
  sigaction(SIGALRM, &action, NULL);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long sum = filler_before(0) + filler_after(0);
    setitimer(ITIMER_REAL, &fast, NULL);
    for (long i = 0, count = atol(line); i < count; ++i) sum += CallAll((int)(i % 5) + 1);
    setitimer(ITIMER_REAL, &off, NULL);
    printf("%ld %ld\n", strange, sum);
  }
  return 0;
}

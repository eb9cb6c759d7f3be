// Programs with traps of their own: a SIGSEGV handler that mends and restarts, an int3 that belongs
// to the program, a ud2 it skips. Every handler checks ip and fault address. faults ROUNDS [wait]
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "gate.h"

static char* page;
static unsigned long mended, trapped, skipped, strange;
extern const char fault_site[], int3_site[], ud2_site[];

__asm__(
    ".text\n.globl load_it\n.type load_it,@function\nload_it:\n"
    "  xor %eax, %eax\n.globl fault_site\nfault_site:\n  movzbl (%rdi), %eax\n  ret\n"
    ".size load_it, .-load_it\n"
    ".globl int3_it\n.type int3_it,@function\nint3_it:\n"
    "  nop\n.globl int3_site\nint3_site:\n  int3\n  nop\n  ret\n.size int3_it, .-int3_it\n"
    ".globl ud2_it\n.type ud2_it,@function\nud2_it:\n"
    "  nop\n.globl ud2_site\nud2_site:\n  ud2\n  ret\n.size ud2_it, .-ud2_it\n");
int load_it(const char* from);
void int3_it(void);
void ud2_it(void);

static void OnSignal(int number, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  uintptr_t ip = (uintptr_t)registers[REG_RIP];
  if (number == SIGSEGV) {
    strange += ip != (uintptr_t)fault_site || info->si_addr != page + 3;
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    ++mended;
  } else if (number == SIGTRAP) {
    strange += ip != (uintptr_t)int3_site + 1;
    ++trapped;
  } else {
    strange += ip != (uintptr_t)ud2_site;
    registers[REG_RIP] += 2;
    ++skipped;
  }
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 5;
  struct sigaction action = {.sa_sigaction = OnSignal, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  sigaction(SIGTRAP, &action, NULL);
  sigaction(SIGILL, &action, NULL);
  page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  page[3] = 9;
  WaitIfTold(argc, argv);
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    mprotect(page, 4096, PROT_NONE);
    sum += load_it(page + 3);
    int3_it();
    ud2_it();
  }
  printf("mended %lu trapped %lu skipped %lu strange %lu sum %d\n", mended, trapped, skipped,
         strange, sum);
  return 0;
}

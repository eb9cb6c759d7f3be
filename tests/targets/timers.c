// A timer signal every half millisecond while a probed function runs; the handler checks that it
// never sees an instruction pointer outside the program's own files. timers CALLS [wait]
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

#include "gate.h"

static struct { unsigned long start, end; } code[64];
static int code_count;
static volatile unsigned long ticks, strange, in_tick;

static int Remember(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size, (void)unused;
  for (int i = 0; i < info->dlpi_phnum && code_count < 64; ++i) {
    const ElfW(Phdr)* header = &info->dlpi_phdr[i];
    if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
    code[code_count].start = info->dlpi_addr + header->p_vaddr;
    code[code_count++].end = info->dlpi_addr + header->p_vaddr + header->p_memsz;
  }
  return 0;
}

static void OnTick(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  unsigned long ip = (unsigned long)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  int known = 0;
  for (int i = 0; i < code_count; ++i) known |= ip >= code[i].start && ip < code[i].end;
  ++ticks;
  strange += !known;
}

__attribute__((noipa)) unsigned long tick_work(unsigned long n) {
  ++in_tick;
  return n * n + 5;
}

int main(int argc, char** argv) {
  unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
  struct sigaction action = {.sa_sigaction = OnTick, .sa_flags = SA_SIGINFO | SA_RESTART};
  dl_iterate_phdr(Remember, NULL);
  WaitIfTold(argc, argv);
  sigaction(SIGALRM, &action, NULL);
  struct itimerval half_ms = {{0, 500}, {0, 500}};
  setitimer(ITIMER_REAL, &half_ms, NULL);
  unsigned long sum = 0, expected = 0;
  for (unsigned long i = 0; i < calls; ++i) sum += tick_work(i), expected += i * i + 5;
  struct itimerval off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &off, NULL);
  printf("calls %lu strange %lu sum %s\n", in_tick, strange, sum == expected ? "ok" : "WRONG");
  fprintf(stderr, "ticks %lu\n", ticks);
  return 0;
}

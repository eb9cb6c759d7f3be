// Calls look() under conditions that code of ours has to live with too. A line "strict N": N times
// with the alignment check on (EFLAGS.AC); prints what they returned. "vanish N": until its stack
// is unmapped under it, N times; prints how often that was seen. "handle 0": prints "inside" in a
// handler that has interrupted late() at its second instruction, and returns from it after the next
// line. 1: that handler has 2 MiB on its stack. 2: a second one has interrupted it meanwhile, which
// runs on a stack of its own.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Reads nothing, so only who looks at its arguments does.
long look(const char* text, const unsigned* number);
// Calls it, `count` times, with the alignment check on.
long look_strictly(const char* text, const unsigned* number, long count);
// Calls it on another stack until that is gone.
void look_from(char* stack, const char* text, const unsigned* number);
__asm__(
    ".text\n.globl look\n.type look,@function\nlook:\n"
    "lea 1(%rdi),%rax\nsub %rdi,%rax\nret\n.size look,.-look\n"
    ".globl look_strictly\n.type look_strictly,@function\nlook_strictly:\n"
    "push %rbx\npush %rbp\nmov %rdx,%rbx\nxor %ebp,%ebp\n"
    "pushf\norl $0x40000,(%rsp)\npopf\n"
    "1: call look\nadd %rax,%rbp\ndec %rbx\njnz 1b\n"
    "pushf\nandl $~0x40000,(%rsp)\npopf\n"
    "mov %rbp,%rax\npop %rbp\npop %rbx\nret\n.size look_strictly,.-look_strictly\n"
    ".globl look_from\n.type look_from,@function\nlook_from:\n"
    "mov %rdi,%rsp\nmov %rsi,%rdi\nmov %rdx,%rsi\n"
    "1: call look\njmp 1b\n.size look_from,.-look_from\n");

// Faults at its second instruction.
long late(const char* from);
__asm__(
    ".text\n.globl late\n.type late,@function\nlate:\n"
    "mov %rdi,%rdx\nmovsbq (%rdx),%rax\nret\n.size late,.-late\n");

enum { kStackBytes = 64 << 10 };
static char long_text[4096];
static _Alignas(8) char odd[64] = "?not aligned";
static sigjmp_buf back;
static char* volatile stack;

static void on_segv(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static char* page;
static volatile long how;

static void wait_for_line(int number) {
  (void)number;
  char line[64];
  printf("inside\n");
  if (!fgets(line, sizeof line, stdin)) exit(1);
}

static __attribute__((noinline)) void wait_deep(void) {
  volatile char space[2 << 20];
  space[0] = 1;
  wait_for_line(space[0]);
}

static void on_late(int number) {
  if (how == 0) wait_for_line(number);
  if (how == 1) wait_deep();
  if (how == 2) raise(SIGUSR1);
  mprotect(page, 4096, PROT_READ);
}

static void use_alternate_stack(void) {
  static char alternate[64 << 10];
  stack_t place = {.ss_sp = alternate, .ss_size = sizeof alternate};
  sigaltstack(&place, NULL);
}

static long handle(long kind) {
  struct sigaction on_this = {.sa_handler = on_late};
  struct sigaction on_other = {.sa_handler = wait_for_line, .sa_flags = SA_ONSTACK};
  use_alternate_stack();
  sigaction(SIGSEGV, &on_this, NULL);
  sigaction(SIGUSR1, &on_other, NULL);
  how = kind;
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return late(page);
}

static void* unmap(void* unused) {
  for (volatile int i = 0; i < 20000; ++i) {
  }
  munmap(stack, kStackBytes);
  return unused;
}

static long vanish(long wanted) {
  struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
  use_alternate_stack();
  sigaction(SIGSEGV, &action, NULL);
  memset(long_text, 'x', sizeof long_text - 1);
  volatile long seen = 0;
  while (seen < wanted) {
    stack = mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, unmap, NULL);
    if (sigsetjmp(back, 1) == 0) look_from(stack + kStackBytes - 64, long_text, NULL);
    ++seen;
    pthread_join(thread, NULL);
  }
  return seen;
}

int main(void) {
  char line[64], word[16];
  setvbuf(stdout, NULL, _IOLBF, 0);
  unsigned number = 0x01020304;
  memcpy(odd + 33, &number, sizeof number);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long n = 0;
    if (sscanf(line, "%15s %ld", word, &n) != 2) continue;
    long answer = 0;
    if (!strcmp(word, "strict")) answer = look_strictly(odd + 1, (const unsigned*)(odd + 33), n);
    if (!strcmp(word, "vanish")) answer = vanish(n);
    if (!strcmp(word, "handle")) answer = handle(n);
    printf("%ld\n", answer);
  }
  return 0;
}

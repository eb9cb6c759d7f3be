// A program that writes code into memory of its own and changes it, one command a line. Each call
// of the code adds a constant to `total`, and is counted where it is made.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { kSize = 4096 };

static unsigned char* code;      // as it is executed
static unsigned char* writable;  // as it is written
static volatile unsigned long total, calls, own_traps;

// mov $constant, %eax; add %rax, (%rdi); ret
static size_t assemble(unsigned char* out, uint32_t constant) {
  static const unsigned char kRest[] = {0x48, 0x01, 0x07, 0xc3};
  out[0] = 0xb8;
  memcpy(out + 1, &constant, sizeof constant);
  memcpy(out + 5, kRest, sizeof kRest);
  return 5 + sizeof kRest;
}

// push %rbp; mov $constant, %eax; add %rax, (%rdi); pop %rbp; ret
static size_t assemble_framed(unsigned char* out, uint32_t constant) {
  out[0] = 0x55;
  size_t length = 1 + assemble(out + 1, constant);
  out[length - 1] = 0x5d;
  out[length] = 0xc3;
  return length + 1;
}

static void emit(uint32_t constant) { assemble(writable, constant); }

static void map(void* where) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where != NULL ? MAP_FIXED : 0);
  code = writable = mmap(where, kSize, PROT_READ | PROT_WRITE | PROT_EXEC, flags, -1, 0);
}

// A file of no name, `flags` how its code is mapped.
static void map_memfd(int flags, int double_mapped) {
  int file = memfd_create("code", 0);
  if (ftruncate(file, kSize) != 0) exit(1);
  writable = mmap(NULL, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  code = mmap(NULL, kSize, PROT_READ | PROT_EXEC, flags, file, 0);
  close(file);
  emit(1);
  if (!double_mapped) munmap(writable, kSize);
}

// As a garbage collector does.
static void move(void) {
  memcpy(writable + kSize / 16, code, 64);
  code += kSize / 16;
  writable += kSize / 16;
}

static void call(long times) {
  void (*function)(volatile unsigned long*) = (void (*)(volatile unsigned long*))code;
  for (; times > 0; --times) {
    function(&total);
    ++calls;
  }
}

static void on_trap(int number) {
  (void)number;
  ++own_traps;
}

static int run_child(long times) {
  pid_t child = fork();
  if (child == 0) {
    unsigned long before = total;
    call(times);
    _exit((int)(total - before));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Another thread runs the code all the time while this one changes its constant in place, as runtimes
// change the target of a call: with one store.
static volatile int running;
static void* run(void* unused) {
  while (running) call(1);
  return unused;
}

static void patch_while_running(long times) {
  pthread_t thread;
  running = 1;
  pthread_create(&thread, NULL, run, NULL);
  unsigned long seen = calls;
  for (uint32_t i = 1; i <= times; ++i) {
    *(volatile uint32_t*)(writable + 1) = i;
    while (calls == seen) {
    }
    seen = calls;
  }
  running = 0;
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  char line[128], word[64];
  setvbuf(stdout, NULL, _IOLBF, 0);
  map(NULL);
  emit(1);
  if (argc > 1) signal(SIGTRAP, on_trap);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long n = 0;
    sscanf(line, "%63s %ld", word, &n);
    if (!strcmp(word, "where")) {
      printf("%p\n", (void*)code);
      continue;
    }
    if (!strcmp(word, "call")) call(n);
    if (!strcmp(word, "emit")) emit((uint32_t)n);
    if (!strcmp(word, "frame")) assemble_framed(writable, (uint32_t)n);
    if (!strcmp(word, "patch")) memcpy(writable + 1, &(uint32_t){(uint32_t)n}, 4);
    if (!strcmp(word, "fill")) memset(writable, 0xcc, 64);
    if (!strcmp(word, "trap")) memcpy(writable, "\xcc\xc3\xcc\xcc\xcc\xcc", 6);
    if (!strcmp(word, "unmap")) munmap(code, kSize);
    if (!strcmp(word, "map")) map(code);
    if (!strcmp(word, "forbid")) mprotect(code, kSize, PROT_READ | PROT_WRITE);
    if (!strcmp(word, "allow")) mprotect(code, kSize, PROT_READ | PROT_EXEC);
    if (!strcmp(word, "shared")) map_memfd(MAP_SHARED, 1);
    if (!strcmp(word, "coherent")) map_memfd(MAP_PRIVATE, 1);
    if (!strcmp(word, "memfd")) map_memfd(MAP_PRIVATE, 0);
    if (!strcmp(word, "move")) move();
    if (!strcmp(word, "race")) patch_while_running(n);
    if (!strcmp(word, "exec")) execl("/proc/self/exe", argv[0], (char*)NULL);
    if (!strcmp(word, "fork")) {
      printf("%d\n", run_child(n));
      continue;
    }
    if (!strcmp(word, "bytes")) {
      printf("%02x %02x\n", code[0], code[1]);
      continue;
    }
    printf("%lu %lu %lu\n", calls, total, own_traps);
  }
  return 0;
}

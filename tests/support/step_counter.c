// The reference for hit counts: runs a program by single steps and counts every visit of every
// instruction in a range of its file. Shares nothing with the project.
//   step_counter START LOW HIGH OUT PROGRAM [ARGUMENT...]     (file offsets, hexadecimal)
// Stepping starts when the instruction at START is first reached. OUT gets "offset visits rounds":
// the iterations of a rep string instruction are rounds of one visit.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static uint64_t base, low, high;
static uint64_t *visits, *rounds;

static void Die(const char* what) {
  perror(what);
  if (child > 0) kill(child, SIGKILL);
  exit(125);
}

static uint64_t Ip(void) {
  errno = 0;
  long ip = ptrace(PTRACE_PEEKUSER, child, offsetof(struct user_regs_struct, rip), 0);
  if (errno != 0) Die("PEEKUSER");
  return (uint64_t)ip;
}

// Address minus file offset in the executable mapping that holds `offset`.
static uint64_t FindBase(const char* program, uint64_t offset) {
  char name[64], line[4352], *real = realpath(program, NULL);
  snprintf(name, sizeof name, "/proc/%d/maps", child);
  FILE* maps = fopen(name, "r");
  if (maps == NULL || real == NULL) Die("maps");
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long start, end, at;
    char flags[8];
    if (sscanf(line, "%lx-%lx %7s %lx", &start, &end, flags, &at) != 4) continue;
    if (flags[2] != 'x' || strstr(line, real) == NULL) continue;
    if (offset >= at && offset < at + (end - start)) {
      fclose(maps);
      return start - at;
    }
  }
  errno = ENOENT;
  Die("no mapping holds the start");
  return 0;
}

static int IsRepString(uint64_t ip) {
  unsigned char bytes[8];
  errno = 0;
  long word = ptrace(PTRACE_PEEKTEXT, child, ip, 0);
  if (errno != 0) return 0;
  memcpy(bytes, &word, sizeof bytes);
  int i = 0, rep = 0;
  for (; i < 7; ++i) {
    if (bytes[i] == 0xf2 || bytes[i] == 0xf3) rep = 1;
    else if (bytes[i] != 0x66 && (bytes[i] & 0xf0) != 0x40) break;
  }
  return rep && ((bytes[i] >= 0xa4 && bytes[i] <= 0xa7) || (bytes[i] >= 0xaa && bytes[i] <= 0xaf));
}

static void RunTo(uint64_t address) {
  long old = ptrace(PTRACE_PEEKTEXT, child, address, 0);
  long trap = (old & ~0xffl) | 0xcc;
  int status;
  if (ptrace(PTRACE_POKETEXT, child, address, trap) != 0) Die("POKETEXT");
  if (ptrace(PTRACE_CONT, child, 0, 0) != 0) Die("CONT");
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) Die("start not reached");
  ptrace(PTRACE_POKETEXT, child, address, old);
  ptrace(PTRACE_POKEUSER, child, offsetof(struct user_regs_struct, rip), address);
}

static int Step(void) {
  uint64_t previous = 0;
  int status, deliver = 0;
  for (;;) {
    uint64_t ip = Ip(), offset = ip - base;
    if (offset >= low && offset < high && deliver == 0) {
      int repeats = ip == previous && IsRepString(ip);
      visits[offset - low] += !repeats;
      ++rounds[offset - low];
    }
    previous = ip;
    if (ptrace(PTRACE_SINGLESTEP, child, 0, deliver) != 0) Die("SINGLESTEP");
    if (waitpid(child, &status, 0) != child) Die("waitpid");
    if (!WIFSTOPPED(status)) return status;
    deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  }
}

int main(int argc, char** argv) {
  if (argc < 6) return 125;
  uint64_t start = strtoull(argv[1], NULL, 16);
  low = strtoull(argv[2], NULL, 16);
  high = strtoull(argv[3], NULL, 16);
  visits = calloc(high - low, sizeof *visits);
  rounds = calloc(high - low, sizeof *rounds);
  child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[5], argv + 5);
    _exit(126);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) Die("exec");
  ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL);
  base = FindBase(argv[5], start);
  RunTo(base + start);
  status = Step();
  FILE* out = fopen(argv[4], "w");
  if (out == NULL) Die(argv[4]);
  for (uint64_t i = 0; i < high - low; ++i) {
    if (visits[i] != 0) {
      fprintf(out, "%lx %lu %lu\n", (unsigned long)(low + i), (unsigned long)visits[i],
              (unsigned long)rounds[i]);
    }
  }
  fclose(out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

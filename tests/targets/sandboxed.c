// Shuts itself in as a server's process does that has not yet been told who is there: no files, no
// descriptors, no processes, another user where it may, and few system calls, of which any other ends
// it. Calls work() all the time; ends with its input. sandboxed [filter|strict] [wait]: by a filter,
// or by the strict mode of seccomp(2).
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gate.h"

#define ALLOW(number)                                            \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##number, 0, 1),       \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static unsigned long calls, wrong;

__attribute__((noipa)) unsigned long work(unsigned long n) {
  __asm__ volatile("" ::: "memory");
  ++calls;
  return 3 * n + 1;
}

static void Limit(int what) {
  const struct rlimit none = {0, 0};
  if (setrlimit(what, &none) != 0) exit(2);
}

static int Confine(int strict) {
  static struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(read),
      ALLOW(write),
      ALLOW(exit_group),
      ALLOW(exit),
      ALLOW(rt_sigreturn),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  static const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  Limit(RLIMIT_FSIZE);
  Limit(RLIMIT_NOFILE);
  Limit(RLIMIT_NPROC);
  if (geteuid() == 0 && (chroot("/proc/self/fdinfo") != 0 || setresgid(65534, 65534, 65534) != 0 ||
                         setresuid(65534, 65534, 65534) != 0))
    return -1;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  if (strict) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void Say(const char* what, unsigned long number) {
  char line[64];
  int length = snprintf(line, sizeof line, "%s %lu\n", what, number);
  if (write(1, line, length) != length) syscall(SYS_exit, 3);
}

// Each byte that comes is worth so many calls.
int main(int argc, char** argv) {
  WaitIfTold(argc, argv);
  if (Confine(argc > 1 && strcmp(argv[1], "strict") == 0) != 0) return 1;
  Say("confined", 0);
  for (char byte; read(0, &byte, 1) == 1;) {
    for (int i = 0; i < 100; ++i) wrong += work(calls) != 3 * (calls - 1) + 1;
    Say("calls", calls);
  }
  Say("wrong", wrong);
  syscall(SYS_exit, 0);
}

// Strict seccomp: any call but read, write and exit kills it. Prints "ready ADDRESS", waits for a byte,
// calls Probed() once.
#include <linux/seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }

int main(void) {
  char line[64], byte;
  snprintf(line, sizeof line, "ready %p\n", (void *)Probed);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (write(1, line, strlen(line)) < 0 || read(0, &byte, 1) != 1) syscall(SYS_exit, 1);
  Probed();
  syscall(SYS_exit, 0);
}

// A parent in uninterruptible sleep while its vfork child, in the same memory, waits for a byte, then
// calls Probed() and becomes another program. Prints "ready ADDRESS", in the end "calls N".
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_long calls;

__attribute__((noinline, naked)) void Probed(void) { __asm__("nop\n\tret"); }

int main(void) {
  printf("ready %p\n", (void *)Probed);
  fflush(stdout);
  pid_t child = vfork();
  if (child == 0) {
    char byte;
    if (read(0, &byte, 1) != 1) _exit(1);
    Probed();
    atomic_fetch_add(&calls, 1);
    execl("/bin/true", "true", NULL);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("calls %ld\n", atomic_load(&calls));
  return status == 0 ? 0 : 3;
}

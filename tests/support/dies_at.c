// dies_at N COMMAND [ARGUMENT...]: runs a command, and kills it when it is about to make its Nth
// system call that may change another process (0: never). Prints "calls K" and "killed" or "ended".
// SIGTERM is passed on. Shares nothing with the project.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;

static void PassOn(int number) {
  kill(child, number);
}

static void Die(const char* what) {
  perror(what);
  if (child > 0) kill(child, SIGKILL);
  exit(125);
}

static pid_t StartSeized(char** command) {
  int gate[2];
  if (pipe(gate) != 0) Die("pipe");
  child = fork();
  if (child < 0) Die("fork");
  if (child == 0) {
    char byte;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 1) _exit(125);
    close(gate[0]);
    execvp(command[0], command);
    _exit(127);
  }
  close(gate[0]);
  long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL;
  if (ptrace(PTRACE_SEIZE, child, 0, options) != 0) Die("PTRACE_SEIZE");
  if (ptrace(PTRACE_INTERRUPT, child, 0, 0) != 0) Die("PTRACE_INTERRUPT");
  if (write(gate[1], "x", 1) != 1) Die("write");
  close(gate[1]);
  return child;
}

static struct __ptrace_syscall_info info;

static int ChangesOthers(pid_t tid) {
  if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0) return 0;
  if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return 0;
  switch (info.entry.nr) {
    case SYS_ptrace:
    case SYS_process_vm_writev:
    case SYS_pwrite64:
    case SYS_tgkill:
    case SYS_rt_tgsigqueueinfo:
      return 1;
    default:
      return 0;
  }
}

// How a stopped thread goes on.
static void Resume(pid_t tid, int status) {
  int signal = WSTOPSIG(status), event = status >> 16;
  int is_job_control =
      signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
  if (event == PTRACE_EVENT_STOP && is_job_control) {
    ptrace(PTRACE_LISTEN, tid, 0, 0);
    return;
  }
  int passed_on = event != 0 || signal == (SIGTRAP | 0x80) ? 0 : signal;
  ptrace(PTRACE_SYSCALL, tid, 0, passed_on);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  long last = atol(argv[1]), calls = 0;
  int killed = 0;
  StartSeized(argv + 2);
  signal(SIGTERM, PassOn);
  for (;;) {
    int status;
    pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0 && errno == EINTR) continue;
    if (tid < 0) break;  // every thread has ended
    if (!WIFSTOPPED(status)) continue;
    if (WSTOPSIG(status) == (SIGTRAP | 0x80) && ChangesOthers(tid) && ++calls == last) {
      kill(child, SIGKILL);
      killed = 1;
      fprintf(stderr, "killed before call %ld: %llu(%#llx, %lld, %#llx, %#llx)\n", calls,
              (unsigned long long)info.entry.nr, (unsigned long long)info.entry.args[0],
              (long long)info.entry.args[1], (unsigned long long)info.entry.args[2],
              (unsigned long long)info.entry.args[3]);
      continue;
    }
    Resume(tid, status);
  }
  printf("calls %ld\n%s\n", calls, killed ? "killed" : "ended");
  return 0;
}

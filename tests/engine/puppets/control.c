// Awkward control flow, one command a line: what return probes must survive.
#define _GNU_SOURCE
#include <alloca.h>
#include <complex.h>
#include <execinfo.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define PROBED __attribute__((noinline, noipa))

PROBED long recurse(long depth) { return depth == 0 ? 0 : 1 + recurse(depth - 1); }

PROBED long tail_callee(long x) { return x * 3; }
PROBED __attribute__((optimize("O2"))) long tail_caller(long x) { return tail_callee(x + 1); }

// Depth of the stack that backtrace(3) sees at the bottom, below frames of changing size.
PROBED long traced(long depth) {
  volatile char* space = alloca(16 + depth * 977 % 4096);
  space[0] = 1;
  void* frames[64];
  if (depth == 0) return backtrace(frames, 64);
  return traced(depth - 1) + space[0] - 1;
}

static jmp_buf back;
PROBED long jumper(long depth) {
  if (depth == 0) longjmp(back, 1);
  return 1 + jumper(depth - 1);
}

struct pair { long a, b; };
struct big { long v[9]; };
PROBED int ret_int(void) { return -7; }
PROBED __int128 ret_int128(void) { return ((__int128)0x1122334455667788 << 64) | 0x99aabbccddeeff00; }
PROBED float ret_float(void) { return 1.5f; }
PROBED double ret_double(void) { return 2.25; }
PROBED long double ret_long_double(void) { return 3.0625L; }
PROBED struct pair ret_pair(void) { return (struct pair){11, 22}; }
PROBED struct big ret_big(void) { return (struct big){{1, 2, 3, 4, 5, 6, 7, 8, 9}}; }
PROBED double complex ret_complex(void) { return 1.0 + 2.0 * I; }
PROBED long double complex ret_complex_long(void) { return 3.0L + 4.0L * I; }

static int abi_kinds(void) {
  int wrong = 0;
  wrong += ret_int() != -7;
  wrong += ret_int128() != (((__int128)0x1122334455667788 << 64) | 0x99aabbccddeeff00);
  wrong += ret_float() != 1.5f;
  wrong += ret_double() != 2.25;
  wrong += ret_long_double() != 3.0625L;
  struct pair pair = ret_pair();
  wrong += pair.a != 11 || pair.b != 22;
  struct big big = ret_big();
  for (int i = 0; i < 9; ++i) wrong += big.v[i] != i + 1;
  wrong += ret_complex() != 1.0 + 2.0 * I;
  wrong += ret_complex_long() != 3.0L + 4.0L * I;
  return wrong;
}

// A system call whose instruction has a name.
long raw_syscall(long number, long a, long b, long c);
__asm__(
    ".text\n.globl raw_syscall\n.type raw_syscall,@function\nraw_syscall:\n"
    "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\n"
    ".globl the_syscall\n.type the_syscall,@function\nthe_syscall:\nsyscall\nret\n"
    ".size raw_syscall,.-raw_syscall\n");

static volatile sig_atomic_t faults, ticks;
static void* volatile fault_ip;
static char* volatile page;
long load_byte(char* from);
__asm__(
    ".text\n.globl load_byte\n.type load_byte,@function\nload_byte:\n"
    "movsbq (%rdi),%rax\nret\n.size load_byte,.-load_byte\n");

// Faults at its second instruction.
long load_late(char* from);
__asm__(
    ".text\n.globl load_late\n.type load_late,@function\nload_late:\n"
    "mov %rdi,%rdx\nload_late_second:\nmovsbq (%rdx),%rax\nret\n.size load_late,.-load_late\n");

static void on_segv(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ++faults;
  fault_ip = (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static volatile unsigned long strange_ips;
static volatile int spinning;  // in no other code than the program's
extern char __executable_start, etext;
static void on_tick(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ++ticks;
  char* ip = (char*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  if (spinning && (ip < &__executable_start || ip >= &etext)) ++strange_ips;
}

// The two kinds of instructions that a copy cannot leave by itself.
void pop_flags(void);
void call_through_stack(void);
__asm__(
    ".text\n.globl pop_flags\n.type pop_flags,@function\npop_flags:\npushf\n"
    ".globl the_popf\n.type the_popf,@function\nthe_popf:\npopf\nret\n"
    ".globl call_through_stack\n.type call_through_stack,@function\ncall_through_stack:\n"
    "lea 1f(%rip),%rax\npush %rax\n"
    ".globl the_stack_call\n.type the_stack_call,@function\nthe_stack_call:\ncall *(%rsp)\n"
    "add $8,%rsp\nret\n1: ret\n"
    ".size the_stack_call,.-the_stack_call\n");

static volatile unsigned long spins;
static char long_text[3000];
PROBED long spin_work(long x, const char* text) {
  ++spins;
  return x + (text != NULL);
}

// Until the timer has ticked N times, every so many nanoseconds; calls nothing outside the program.
static void storm(long wanted, long interval) {
  struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  struct itimerspec times = {{0, interval}, {0, interval}};
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  timer_settime(timer, 0, &times, NULL);
  spinning = 1;
  while (ticks < wanted) spin_work(1, long_text);
  spinning = 0;
  timer_delete(timer);
}

// As fast as the machine can: the next signal when the last has been handled and the program has gone
// on. (By a timer that is faster than a tracer can pass its signals on, no traced program goes on.)
static volatile int hurrying;
static void* send_ticks(void* main_thread) {
  while (hurrying) {
    unsigned long seen_ticks = ticks, seen_spins = spins;
    pthread_kill(*(pthread_t*)main_thread, SIGALRM);
    while (hurrying && (ticks == seen_ticks || spins == seen_spins)) {
    }
  }
  return NULL;
}

static void hurry(long wanted) {
  struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
  sigaction(SIGALRM, &action, NULL);
  pthread_t self = pthread_self(), sender;
  hurrying = 1;
  pthread_create(&sender, NULL, send_ticks, &self);
  spinning = 1;
  while (ticks < wanted) spin_work(1, long_text);
  spinning = 0;
  hurrying = 0;
  pthread_join(sender, NULL);
}

static void spin(long wanted) {
  struct sigaction action = {.sa_sigaction = on_tick, .sa_flags = SA_SIGINFO};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &timer, NULL);
  spinning = 1;
  while (ticks < wanted) {
    spin_work(1, long_text);
    pop_flags();
    call_through_stack();
  }
  spinning = 0;
  setitimer(ITIMER_REAL, &off, NULL);
}

static long fork_child(long through_raw) {
  pid_t child = through_raw ? raw_syscall(SYS_fork, 0, 0, 0) : fork();
  if (child == 0) _exit(recurse(5) == 5 ? 42 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Forks inside a probed frame, so that both processes return through it.
PROBED long fork_inside(long x) {
  pid_t child = fork();
  if (child == 0) return -1;
  int status = 0;
  waitpid(child, &status, 0);
  return x + (WIFEXITED(status) ? WEXITSTATUS(status) : 1000);
}

// A child that shares memory returns from here on its parent's stack, and then the parent does.
// Not through vfork(3), whose own frame would be gone by then.
long share_stack(void);
__asm__(
    ".text\n.globl share_stack\n.type share_stack,@function\nshare_stack:\n"
    "mov (%rsp),%rdi\nmov $58,%eax\nsyscall\nmov %rdi,(%rsp)\nret\n"
    ".size share_stack,.-share_stack\n");
// Nothing that the parent needs may be on the stack below the child.
static volatile long shared_exit;
static void share(long n) {
  shared_exit = n;
  long child = share_stack();
  if (child == 0) raw_syscall(SYS_exit, shared_exit + 7, 0, 0);
  int status = 0;
  waitpid(child, &status, 0);
  printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

// A tracepoint's semaphore, as <sys/sdt.h> makes them.
volatile unsigned short semaphore __attribute__((section(".probes"))) = 0;

// From here on a filter is in force that happens to allow everything.
static void confine(void) {
  struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  struct sock_fprog program = {1, &allow};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  printf("%d\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static volatile unsigned long own_traps;
static void on_trap(int number) {
  (void)number;
  ++own_traps;
}

// Stands one byte behind a nop until a SIGTRAP is sent.
void stand(void);
__asm__(
    ".text\n.globl stand\n.type stand,@function\nstand:\n"
    ".globl the_nop\n.type the_nop,@function\nthe_nop:\nnop\n1: jmp 1b\nret\n"
    ".size stand,.-stand\n");
static void on_nudge(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ++own_traps;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] = (greg_t)((char*)stand + 3);
}

PROBED long take_text(const char* text) { return (long)strlen(text); }

// Prints whether its return address is foreign, once it is entered and again after a line came.
static int is_foreign(void** slot) {
  char* address = *(char* volatile*)slot;
  return address < &__executable_start || address >= &etext;
}
PROBED long wait_inside(long x) {
  char line[64];
  void** slot = (void**)__builtin_frame_address(0) + 1;
  printf("%d\n", is_foreign(slot));
  while (fgets(line, sizeof line, stdin) && line[0] == 'l') printf("%d\n", is_foreign(slot));
  return x + 1;
}

static void pin(long cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  printf("%d\n", sched_setaffinity(0, sizeof set, &set));
}

// What raised a signal, as its handler was told.
static void* volatile named;
static void* volatile at;
static void on_named(int number, siginfo_t* info, void* context) {
  (void)number;
  named = info->si_addr;
  at = (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 3;
}

long divide(long a, long b);
__asm__(
    ".text\n.globl divide\n.type divide,@function\ndivide:\nmov %rdi,%rax\ncqo\n"
    ".globl the_division\n.type the_division,@function\nthe_division:\nidiv %rsi\nret\n"
    ".size divide,.-divide\n");
extern char the_division;

// Steps itself with the trap flag through an indirect call; counts the traps of its handler, and
// those that were outside the program.
static volatile unsigned long own_steps, strange_steps;
static void on_step(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  char* where = info->si_addr;
  ++own_steps;
  if (where < &__executable_start || where >= &etext) ++strange_steps;
}
long step_over(long (*function)(long), long x);
long plain(long x);
__asm__(
    ".text\n.globl step_over\n.type step_over,@function\nstep_over:\n"
    "sub $8,%rsp\nmov %rdi,%rax\nmov %rsi,%rdi\n"
    "pushf\norl $0x100,(%rsp)\n"
    ".globl the_first_popf\n.type the_first_popf,@function\nthe_first_popf:\npopf\n"
    ".globl the_call\n.type the_call,@function\nthe_call:\ncall *%rax\n"
    "pushf\nandl $~0x100,(%rsp)\n"
    ".globl the_last_popf\n.type the_last_popf,@function\nthe_last_popf:\npopf\n"
    "add $8,%rsp\nret\n"
    ".size step_over,.-step_over\n"
    ".globl plain\n.type plain,@function\nplain:\nlea 1(%rdi),%rax\nret\n.size plain,.-plain\n");

// 1 ignores SIGTRAP, 2 blocks it with a handler in place, 3 has the handler only, 4 blocks all,
// 5 unblocks it.
static void set_trap(long how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTRAP);
  if (how == 4) sigfillset(&set);
  if (how < 4) signal(SIGTRAP, how == 1 ? SIG_IGN : on_trap);
  if (how == 2 || how == 4) sigprocmask(SIG_BLOCK, &set, NULL);
  if (how == 5) sigprocmask(SIG_UNBLOCK, &set, NULL);
}

// What is done on SIGTRAP: 0 the default, 1 nothing, 2 on_trap; and whether it is blocked.
static void show_trap(void) {
  struct sigaction action;
  sigset_t set;
  sigaction(SIGTRAP, NULL, &action);
  sigprocmask(SIG_BLOCK, NULL, &set);
  int what = action.sa_handler == SIG_IGN ? 1 : action.sa_handler == on_trap ? 2 : 0;
  printf("%d %d\n", what, sigismember(&set, SIGTRAP));
}

// The same for SIGSEGV.
static void show_segv(void) {
  struct sigaction action;
  sigset_t set;
  sigaction(SIGSEGV, NULL, &action);
  sigprocmask(SIG_BLOCK, NULL, &set);
  int what = action.sa_handler == SIG_IGN ? 1 : action.sa_handler == on_trap ? 2 : 0;
  printf("%d %d\n", what, sigismember(&set, SIGSEGV));
}
static void set_segv(long how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  if (how == 4) sigfillset(&set);
  if (how < 4) signal(SIGSEGV, how == 1 ? SIG_IGN : on_trap);
  if (how == 2 || how == 4) sigprocmask(SIG_BLOCK, &set, NULL);
  show_segv();
}

// Of the memory it may do no more than write, by what is asked of the kernel; the processor lets it
// read that too.
static char write_only_stack[64 << 10] __attribute__((aligned(4096)));
static void* recurse_there(void* depth) {
  mprotect(write_only_stack, sizeof write_only_stack, PROT_WRITE);
  long result = recurse((long)depth);
  mprotect(write_only_stack, sizeof write_only_stack, PROT_READ | PROT_WRITE);
  return (void*)result;
}

static long recurse_on_write_only_stack(long depth) {
  pthread_attr_t attributes;
  pthread_t thread;
  void* result = NULL;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, write_only_stack, sizeof write_only_stack);
  pthread_create(&thread, &attributes, recurse_there, (void*)depth);
  pthread_join(thread, &result);
  return (long)result;
}

static void run(const char* word, long n) {
  if (!strcmp(word, "recurse")) printf("%ld\n", recurse(n));
  else if (!strcmp(word, "write-only")) printf("%ld\n", recurse_on_write_only_stack(n));
  else if (!strcmp(word, "tail")) printf("%ld\n", tail_caller(n));
  else if (!strcmp(word, "longjmp")) {
    volatile long landed = 0;
    for (volatile long i = 0; i < n; ++i) {
      if (setjmp(back) == 0) jumper(5);
      else ++landed;
    }
    printf("%ld %ld\n", landed, recurse(3));
  } else if (!strcmp(word, "abi")) printf("%d\n", abi_kinds());
  else if (!strcmp(word, "syscall")) printf("%d\n", raw_syscall(SYS_getpid, 0, 0, 0) == getpid());
  else if (!strcmp(word, "fork")) printf("%ld\n", fork_child(n));
  else if (!strcmp(word, "forkin")) {
    long result = fork_inside(n);
    if (result == -1) _exit(7);
    printf("%ld\n", result);
  } else if (!strcmp(word, "fault")) {
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long value = load_byte(page);
    printf("%ld %d %d\n", value, (int)faults, fault_ip == (void*)load_byte);
  } else if (!strcmp(word, "storm")) {
    storm(n, 200000);
    printf("%lu %d %lu\n", spins, ticks >= n, strange_ips);
  } else if (!strcmp(word, "hurry")) {
    hurry(n);
    printf("%lu %d %lu\n", spins, ticks >= n, strange_ips);
  } else if (!strcmp(word, "faultlate")) {
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long value = load_late(page);
    printf("%ld %d %d\n", value, (int)faults, fault_ip == (char*)load_late + 3);
  } else if (!strcmp(word, "spin")) {
    spin(n);
    printf("%lu %d %lu\n", spins, ticks >= n, strange_ips);
  } else if (!strcmp(word, "int3")) {
    signal(SIGTRAP, on_trap);
    for (long i = 0; i < n; ++i) __asm__ volatile("int3");
    printf("%lu\n", own_traps);
  } else if (!strcmp(word, "traps")) {
    printf("%lu\n", own_traps);
  } else if (!strcmp(word, "stand")) {
    struct sigaction action = {.sa_sigaction = on_nudge, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    stand();
    printf("%lu\n", own_traps);
  } else if (!strcmp(word, "wait")) {
    printf("%ld\n", wait_inside(n));
  } else if (!strcmp(word, "settrap")) {
    set_trap(n);
    show_trap();
  } else if (!strcmp(word, "setsegv")) {
    set_segv(n);
  } else if (!strcmp(word, "showsegv")) {
    show_segv();
  } else if (!strcmp(word, "showtrap")) {
    show_trap();
  } else if (!strcmp(word, "raise")) {
    printf("%d\n", raise(n));
  } else if (!strcmp(word, "text")) {
    static char text[8192];
    memset(text, 'x', n);
    printf("%ld\n", take_text(text));
  } else if (!strcmp(word, "pin")) {
    pin(n);
  } else if (!strcmp(word, "divide")) {
    struct sigaction action = {.sa_sigaction = on_named, .sa_flags = SA_SIGINFO};
    sigaction(SIGFPE, &action, NULL);
    divide(7, n);
    printf("%d %d\n", named == &the_division, at == &the_division);
  } else if (!strcmp(word, "step")) {
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    long result = step_over(plain, n);
    printf("%ld %lu %lu\n", result, own_steps, strange_steps);
  } else if (!strcmp(word, "backtrace")) {
    long seen = 0;
    for (long i = 0; i < n; ++i) seen += traced(i % 8);
    printf("%ld\n", seen);
  } else if (!strcmp(word, "vfork")) {
    share(n);
  } else if (!strcmp(word, "semaphore")) {
    printf("%d\n", semaphore);
  } else if (!strcmp(word, "seccomp")) {
    confine();
  } else if (!strcmp(word, "system")) {
    int status = system("exit 3");
    printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  } else if (!strcmp(word, "exec")) {
    execl("/proc/self/exe", "again", NULL);
  }
}

int main(void) {
  char line[128], word[64];
  memset(long_text, 'x', sizeof long_text - 1);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof line, stdin)) {
    long n = 0;
    if (sscanf(line, "%63s %ld", word, &n) >= 1) run(word, n);
  }
  return 0;
}

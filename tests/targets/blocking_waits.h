// Calls that wait for anything else, queues and signals for example: see blocking_calls.h.
#pragma once
#include "blocking_means.h"

static int MakeSemaphore(struct Means* means) {
  means->id = semget(IPC_PRIVATE, 1, 0600);
  return means->id;
}
static long Semaphore(struct Means* means) {
  struct sembuf down = {0, -1, 0};
  return Result(semop(means->id, &down, 1));
}
static long SemaphoreTime(struct Means* means) {
  struct sembuf down = {0, -1, 0};
  struct timespec limit = {kSeconds, 0};
  return Result(semtimedop(means->id, &down, 1, &limit));
}
static void Up(struct Means* means) {
  struct sembuf up = {0, 1, 0};
  if (semop(means->id, &up, 1) != 0) abort();
  while (!__atomic_load_n(&means->ended, __ATOMIC_SEQ_CST))
    usleep(1000);
  semctl(means->id, 0, IPC_RMID);
}
struct Letter {
  long kind;
  char text[8192];
};
static int MakeQueue(struct Means* means) {
  means->id = msgget(IPC_PRIVATE, 0600);
  return means->id;
}
static int FillQueue(struct Means* means) {
  static struct Letter letter = {.kind = 1};
  if (MakeQueue(means) < 0) return -1;
  while (msgsnd(means->id, &letter, sizeof letter.text, IPC_NOWAIT) == 0) {
  }
  return 0;
}
static long ReceiveLetter(struct Means* means) {
  struct Letter letter;
  return Result(msgrcv(means->id, &letter, sizeof letter.text, 0, 0));
}
static long SendLetter(struct Means* means) {
  static struct Letter letter = {.kind = 1};
  return Result(msgsnd(means->id, &letter, sizeof letter.text, 0));
}
static void RemoveQueue(struct Means* means) {
  while (!__atomic_load_n(&means->ended, __ATOMIC_SEQ_CST))
    usleep(1000);
  msgctl(means->id, IPC_RMID, NULL);
}
static void SendOne(struct Means* means) {
  static struct Letter letter = {.kind = 1};
  if (msgsnd(means->id, &letter, 1, 0) != 0) abort();
  RemoveQueue(means);
}
static void ReceiveOne(struct Means* means) {
  ReceiveLetter(means);
  RemoveQueue(means);
}
static int MakeMessageQueue(struct Means* means) {
  struct mq_attr limits = {.mq_maxmsg = 1, .mq_msgsize = 8};
  snprintf(means->name, sizeof means->name, "/probed-%d", getpid());
  means->id = mq_open(means->name, O_RDWR | O_CREAT, 0600, &limits);
  if (means->id >= 0) mq_unlink(means->name);
  return means->id;
}
static long ReceiveTimed(struct Means* means) {
  char text[8];
  struct timespec limit;
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += kSeconds;
  return Result(mq_timedreceive(means->id, text, sizeof text, NULL, &limit));
}
static void SendTimed(struct Means* means) {
  if (mq_send(means->id, "x", 1, 0) != 0) abort();
}

// SIGUSR1 and SIGUSR2 are blocked in all threads, SIGALRM is handled.
static long WaitFor(struct Means* means) {
  (void)means;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR2);
  struct timespec limit = {kSeconds, 0};
  return Result(sigtimedwait(&wanted, NULL, &limit));
}
static long WaitForInfo(struct Means* means) {
  (void)means;
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR2);
  return Result(sigwaitinfo(&wanted, NULL));
}
static void SendUser2(struct Means* means) {
  pthread_kill(means->caller, SIGUSR2);
}
static int MakeSignalFd(struct Means* means) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR1);
  means->fds[0] = signalfd(-1, &wanted, 0);
  return means->fds[0];
}
static long ReadSignal(struct Means* means) {
  struct signalfd_siginfo info;
  long got = read(means->fds[0], &info, sizeof info);
  return got < 0 ? -errno : (long)info.ssi_signo;
}
static void SendUser1(struct Means* means) {
  pthread_kill(means->caller, SIGUSR1);
}
static long Pause(struct Means* means) {
  (void)means;
  return Result(pause());
}
static long Suspend(struct Means* means) {
  (void)means;
  sigset_t none;
  sigemptyset(&none);
  sigaddset(&none, SIGUSR1);
  sigaddset(&none, SIGUSR2);
  return Result(sigsuspend(&none));
}
static void SendAlarm(struct Means* means) {
  pthread_kill(means->caller, SIGALRM);
}

static long SleepUntilNever(int flags, clockid_t clock) {
  struct timespec start, time = {1, 200000000}, end;
  clock_gettime(clock, &start);
  if (flags == TIMER_ABSTIME) time.tv_sec += start.tv_sec, time.tv_nsec = start.tv_nsec;
  int error = clock_nanosleep(clock, flags, &time, NULL);
  clock_gettime(clock, &end);
  return error != 0 ? -error : end.tv_sec - start.tv_sec < 1 ? -1 : 0;
}
static long Sleep(struct Means* means) {
  (void)means;
  return SleepUntilNever(0, CLOCK_REALTIME);
}
static long SleepUntil(struct Means* means) {
  (void)means;
  return SleepUntilNever(TIMER_ABSTIME, CLOCK_MONOTONIC);
}
static void LetSleep(struct Means* means) {
  (void)means;
}

static long Futex(struct Means* means) {
  return Result(syscall(SYS_futex, &means->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
}
static long FutexTime(struct Means* means) {
  struct timespec limit = {kSeconds, 0};
  return Result(syscall(SYS_futex, &means->word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0));
}
static long FutexMany(struct Means* means) {
  struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } waiter = {0, (uintptr_t)&means->word, 2 | FUTEX_PRIVATE_FLAG, 0};  // FUTEX2_SIZE_U32
  struct timespec limit;
  clock_gettime(CLOCK_MONOTONIC, &limit);
  limit.tv_sec += kSeconds;
  long result = Result(syscall(449, &waiter, 1, 0, &limit, CLOCK_MONOTONIC));  // SYS_futex_waitv
  return result == -ENOSYS ? kUnsupported : result;
}
static void WakeFutex(struct Means* means) {
  __atomic_store_n(&means->word, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &means->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
static int MakeChild(struct Means* means) {
  if (MakePipe(means) != 0) return -1;
  means->id = fork();
  if (means->id != 0) return means->id;
  char byte;
  close(means->fds[1]);
  if (read(means->fds[0], &byte, 1) < 0) _exit(1);
  _exit(0);
}
static long WaitForChild(struct Means* means) {
  siginfo_t info;
  long result = waitid(P_PID, (id_t)means->id, &info, WEXITED);
  return result < 0 ? -errno : info.si_status;
}

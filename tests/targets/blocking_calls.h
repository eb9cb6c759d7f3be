// System calls that block: how each is made, how another thread ends it, and what it gives then. A
// tracer that stops the caller must not be seen in the result. Negative results are errno values;
// kUnsupported: this kernel does not have the call.
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kUnsupported = -1000, kSeconds = 60 };

// Its two ends, or what else a call needs; each call has one of its own.
struct Means {
  int fds[2];
  int id;
  uint32_t word;
  pthread_t caller;
  int ended;
  char name[64];
  void* ring;
};

static long Result(long result) {
  return result < 0 ? -errno : result;
}

static int MakePipe(struct Means* means) {
  return pipe(means->fds);
}
static void WritePipe(struct Means* means) {
  if (write(means->fds[1], "x", 1) != 1) abort();
}

static int MakeEpoll(struct Means* means) {
  struct epoll_event event = {.events = EPOLLIN};
  means->id = epoll_create1(0);
  return MakePipe(means) != 0 ? -1 : epoll_ctl(means->id, EPOLL_CTL_ADD, means->fds[0], &event);
}
static long Epoll(struct Means* means) {
  struct epoll_event event;
  return Result(epoll_wait(means->id, &event, 1, kSeconds * 1000));
}
static long EpollMask(struct Means* means) {
  struct epoll_event event;
  sigset_t all;
  sigfillset(&all);
  return Result(epoll_pwait(means->id, &event, 1, -1, &all));
}
static long EpollTime(struct Means* means) {
  struct epoll_event event;
  struct timespec limit = {kSeconds, 0};
  return Result(syscall(441, means->id, &event, 1, &limit, NULL, 0));  // SYS_epoll_pwait2
}
static long Poll(struct Means* means) {
  struct pollfd input = {means->fds[0], POLLIN, 0};
  return Result(poll(&input, 1, kSeconds * 1000));
}
static long PollMask(struct Means* means) {
  struct pollfd input = {means->fds[0], POLLIN, 0};
  struct timespec limit = {kSeconds, 0};
  sigset_t none;
  sigemptyset(&none);
  return Result(ppoll(&input, 1, &limit, &none));
}
static long Select(struct Means* means) {
  fd_set inputs;
  FD_ZERO(&inputs);
  FD_SET(means->fds[0], &inputs);
  struct timeval limit = {kSeconds, 0};
  return Result(select(means->fds[0] + 1, &inputs, NULL, NULL, &limit));
}
static long SelectMask(struct Means* means) {
  fd_set inputs;
  FD_ZERO(&inputs);
  FD_SET(means->fds[0], &inputs);
  struct timespec limit = {kSeconds, 0};
  sigset_t none;
  sigemptyset(&none);
  return Result(pselect(means->fds[0] + 1, &inputs, NULL, NULL, &limit, &none));
}
static long Read(struct Means* means) {
  char byte;
  return Result(read(means->fds[0], &byte, 1));
}
static long Splice(struct Means* means) {
  int to[2];
  if (pipe(to) != 0) return -errno;
  return Result(splice(means->fds[0], NULL, to[1], NULL, 1, 0));
}
// Full, so that a writer waits until somebody reads.
static int FillPipe(struct Means* means) {
  static char page[4096];
  if (MakePipe(means) != 0) return -1;
  fcntl(means->fds[1], F_SETFL, O_NONBLOCK);
  while (write(means->fds[1], page, sizeof page) > 0) {
  }
  return fcntl(means->fds[1], F_SETFL, 0);
}
static long Write(struct Means* means) {
  return Result(write(means->fds[1], "x", 1));
}
static void DrainPipe(struct Means* means) {
  static char page[4096];
  if (read(means->fds[0], page, sizeof page) <= 0) abort();
}
static int MakeFifo(struct Means* means) {
  snprintf(means->name, sizeof means->name, "/tmp/probed-fifo-%d", getpid());
  return mkfifo(means->name, 0600);
}
static long Open(struct Means* means) {
  int fd = open(means->name, O_RDONLY);
  return fd < 0 ? -errno : 0;
}
static void OpenOther(struct Means* means) {
  if (open(means->name, O_WRONLY) < 0) abort();
  unlink(means->name);
}

static socklen_t Address(const struct Means* means, struct sockaddr_un* address) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  int length = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "probed-%d-%p",
                        getpid(), (const void*)means);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}
static int Listen(struct Means* means) {
  struct sockaddr_un address;
  socklen_t length = Address(means, &address);
  means->id = socket(AF_UNIX, SOCK_STREAM, 0);
  return bind(means->id, (struct sockaddr*)&address, length) != 0 ? -1 : listen(means->id, 0);
}
static int SetLimit(int socket, int option) {
  struct timeval limit = {kSeconds, 0};
  return setsockopt(socket, SOL_SOCKET, option, &limit, sizeof limit);
}
static int ListenForAWhile(struct Means* means) {
  return Listen(means) != 0 ? -1 : SetLimit(means->id, SO_RCVTIMEO);
}
static long Accept(struct Means* means) {
  return accept(means->id, NULL, NULL) < 0 ? -errno : 0;
}
static void Connect(struct Means* means) {
  struct sockaddr_un address;
  socklen_t length = Address(means, &address);
  int client = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(client, (struct sockaddr*)&address, length) != 0) abort();
}
// The one place in its queue is taken, so that the next client waits.
static int ListenFull(struct Means* means) {
  if (Listen(means) != 0) return -1;
  Connect(means);
  means->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
  return SetLimit(means->fds[0], SO_SNDTIMEO);
}
static long ConnectForAWhile(struct Means* means) {
  struct sockaddr_un address;
  socklen_t length = Address(means, &address);
  return Result(connect(means->fds[0], (struct sockaddr*)&address, length));
}
static void AcceptOne(struct Means* means) {
  if (accept(means->id, NULL, NULL) < 0) abort();
}
static int MakeSockets(struct Means* means) {
  return socketpair(AF_UNIX, SOCK_STREAM, 0, means->fds) != 0
             ? -1
             : SetLimit(means->fds[0], SO_RCVTIMEO);
}
static long Receive(struct Means* means) {
  char byte;
  return Result(recv(means->fds[0], &byte, 1, 0));
}
static long ReceiveMessage(struct Means* means) {
  char byte;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  return Result(recvmsg(means->fds[0], &message, 0));
}

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
// One description of it locked, one to lock.
static int MakeFile(struct Means* means) {
  snprintf(means->name, sizeof means->name, "/tmp/probed-lock-%d-XXXXXX", getpid());
  means->fds[0] = mkstemp(means->name);
  means->fds[1] = open(means->name, O_RDWR);
  return unlink(means->name);
}
static int LockFile(struct Means* means) {
  return MakeFile(means) != 0 ? -1 : flock(means->fds[0], LOCK_EX);
}
static long Flock(struct Means* means) {
  return Result(flock(means->fds[1], LOCK_EX));
}
static void UnlockFile(struct Means* means) {
  flock(means->fds[0], LOCK_UN);
}
static int LockRange(struct Means* means) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return MakeFile(means) != 0 ? -1 : fcntl(means->fds[0], F_OFD_SETLK, &range);
}
static long LockSameRange(struct Means* means) {
  struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return Result(fcntl(means->fds[1], F_OFD_SETLKW, &range));
}
static void UnlockRange(struct Means* means) {
  struct flock range = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
  fcntl(means->fds[0], F_OFD_SETLK, &range);
}

static int MakeEventFd(struct Means* means) {
  means->fds[0] = means->fds[1] = eventfd(0, 0);
  return means->fds[0];
}
static long ReadNumber(struct Means* means) {
  uint64_t number;
  return Result(read(means->fds[0], &number, sizeof number));
}
static void WriteNumber(struct Means* means) {
  uint64_t number = 1;
  if (write(means->fds[1], &number, sizeof number) != sizeof number) abort();
}
static int MakeTimer(struct Means* means) {
  means->fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
  return means->fds[0];
}
static void StartTimer(struct Means* means) {
  struct itimerspec soon = {{0, 0}, {0, 1000}};
  timerfd_settime(means->fds[0], 0, &soon, NULL);
}
static int MakeWatch(struct Means* means) {
  if (MakeFile(means) != 0) return -1;
  means->id = inotify_init();
  snprintf(means->name, sizeof means->name, "/proc/self/fd/%d", means->fds[0]);
  return inotify_add_watch(means->id, means->name, IN_MODIFY);
}
static long ReadWatch(struct Means* means) {
  char events[512];
  return Result(read(means->id, events, sizeof events));
}
static int MakeTerminal(struct Means* means) {
  means->fds[1] = posix_openpt(O_RDWR | O_NOCTTY);
  if (grantpt(means->fds[1]) != 0 || unlockpt(means->fds[1]) != 0) return -1;
  means->fds[0] = open(ptsname(means->fds[1]), O_RDWR | O_NOCTTY);
  return means->fds[0];
}
static void TypeLine(struct Means* means) {
  if (write(means->fds[1], "\n", 1) != 1) abort();
}

static int MakeAio(struct Means* means) {
  aio_context_t context = 0;
  if (syscall(SYS_io_setup, 4, &context) != 0) return errno == ENOSYS ? kUnsupported : -1;
  means->ring = (void*)context;
  return MakePipe(means);
}
static long GetEvents(struct Means* means) {
  struct io_event event;
  struct timespec limit = {kSeconds, 0};
  return Result(syscall(SYS_io_getevents, means->ring, 1, 1, &event, &limit));
}
static void SubmitPoll(struct Means* means) {
  struct iocb poll = {
      .aio_fildes = (uint32_t)means->fds[0], .aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN};
  struct iocb* all[] = {&poll};
  if (syscall(SYS_io_submit, means->ring, 1, all) != 1) abort();
  WritePipe(means);
}

// A ring with one operation on its way: a poll of the pipe.
static int MakeRing(struct Means* means) {
  struct io_uring_params params = {0};
  means->id = (int)syscall(SYS_io_uring_setup, 2, &params);
  if (means->id < 0) return kUnsupported;  // switched off, or not there
  char* ring = mmap(NULL, params.sq_off.array + 8, PROT_READ | PROT_WRITE, MAP_SHARED, means->id,
                    IORING_OFF_SQ_RING);
  struct io_uring_sqe* entry =
      mmap(NULL, 2 * sizeof *entry, PROT_READ | PROT_WRITE, MAP_SHARED, means->id, IORING_OFF_SQES);
  if (ring == MAP_FAILED || entry == MAP_FAILED || MakePipe(means) != 0) return -1;
  entry->opcode = IORING_OP_POLL_ADD;
  entry->fd = means->fds[0];
  entry->poll32_events = POLLIN;
  *(uint32_t*)(ring + params.sq_off.array) = 0;
  __atomic_store_n((uint32_t*)(ring + params.sq_off.tail), 1, __ATOMIC_RELEASE);
  return syscall(SYS_io_uring_enter, means->id, 1, 0, 0, NULL, 0) == 1 ? 0 : -1;
}
static long EnterRing(struct Means* means) {
  return Result(syscall(SYS_io_uring_enter, means->id, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8));
}

static const struct BlockingCall {
  const char* name;
  int (*prepare)(struct Means*);  // may be null; negative: an error
  long (*wait)(struct Means*);
  void (*wake)(struct Means*);
  long expected;
} kBlockingCalls[] = {
    {"epoll_wait", MakeEpoll, Epoll, WritePipe, 1},
    {"epoll_pwait", MakeEpoll, EpollMask, WritePipe, 1},
    {"epoll_pwait2", MakeEpoll, EpollTime, WritePipe, 1},
    {"poll", MakePipe, Poll, WritePipe, 1},
    {"ppoll", MakePipe, PollMask, WritePipe, 1},
    {"select", MakePipe, Select, WritePipe, 1},
    {"pselect", MakePipe, SelectMask, WritePipe, 1},
    {"read", MakePipe, Read, WritePipe, 1},
    {"splice", MakePipe, Splice, WritePipe, 1},
    {"write", FillPipe, Write, DrainPipe, 1},
    {"open", MakeFifo, Open, OpenOther, 0},
    {"accept", Listen, Accept, Connect, 0},
    {"accept_timeout", ListenForAWhile, Accept, Connect, 0},
    {"connect_timeout", ListenFull, ConnectForAWhile, AcceptOne, 0},
    {"recv_timeout", MakeSockets, Receive, WritePipe, 1},
    {"recvmsg_timeout", MakeSockets, ReceiveMessage, WritePipe, 1},
    {"semop", MakeSemaphore, Semaphore, Up, 0},
    {"semtimedop", MakeSemaphore, SemaphoreTime, Up, 0},
    {"msgrcv", MakeQueue, ReceiveLetter, SendOne, 1},
    {"msgsnd", FillQueue, SendLetter, ReceiveOne, 0},
    {"mq_timedreceive", MakeMessageQueue, ReceiveTimed, SendTimed, 1},
    {"sigtimedwait", NULL, WaitFor, SendUser2, SIGUSR2},
    {"sigwaitinfo", NULL, WaitForInfo, SendUser2, SIGUSR2},
    {"signalfd", MakeSignalFd, ReadSignal, SendUser1, SIGUSR1},
    {"pause", NULL, Pause, SendAlarm, -EINTR},
    {"sigsuspend", NULL, Suspend, SendAlarm, -EINTR},
    {"nanosleep", NULL, Sleep, LetSleep, 0},
    {"clock_nanosleep", NULL, SleepUntil, LetSleep, 0},
    {"futex", NULL, Futex, WakeFutex, 0},
    {"futex_timeout", NULL, FutexTime, WakeFutex, 0},
    {"futex_waitv", NULL, FutexMany, WakeFutex, 0},
    {"waitid", MakeChild, WaitForChild, WritePipe, 0},
    {"flock", LockFile, Flock, UnlockFile, 0},
    {"fcntl", LockRange, LockSameRange, UnlockRange, 0},
    {"eventfd", MakeEventFd, ReadNumber, WriteNumber, 8},
    {"timerfd", MakeTimer, ReadNumber, StartTimer, 8},
    {"inotify", MakeWatch, ReadWatch, WritePipe, 16},
    {"terminal", MakeTerminal, Read, TypeLine, 1},
    {"io_getevents", MakeAio, GetEvents, SubmitPoll, 1},
    {"io_uring_enter", MakeRing, EnterRing, WritePipe, 0},
};
enum { kCalls = sizeof kBlockingCalls / sizeof *kBlockingCalls };

static void IgnoreAlarm(int number) {
  (void)number;
}

static void PrepareSignals(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  struct sigaction action = {.sa_handler = IgnoreAlarm};
  sigaction(SIGALRM, &action, NULL);
}

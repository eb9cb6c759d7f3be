// Calls that wait for a descriptor: see blocking_calls.h.
#pragma once
#include "blocking_means.h"

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

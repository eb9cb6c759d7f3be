// One thread in one blocking call. blocked CALL: prints "ready", makes the call again and again until
// the byte that ends the program can be read, and prints "errors N" for results that an untraced
// program would not see. Every wait is for descriptor 0, for a wake-up that the ending byte causes, or
// for a time that is measured.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static int semaphore_id, listener, futex_word, event_poll;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_length;

static long WaitEpoll(void) {
  struct epoll_event event;
  return epoll_wait(event_poll, &event, 1, -1);
}
static long WaitEpollMask(void) {
  struct epoll_event event;
  sigset_t all;
  sigfillset(&all);
  return epoll_pwait(event_poll, &event, 1, -1, &all);
}
static long WaitPoll(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  return poll(&input, 1, -1);
}
static long WaitSelect(void) {
  fd_set inputs;
  FD_ZERO(&inputs);
  FD_SET(0, &inputs);
  return select(1, &inputs, NULL, NULL, NULL);
}
static long WaitSleep(void) {
  struct timespec duration = {.tv_sec = 0, .tv_nsec = 400 * 1000 * 1000};
  return nanosleep(&duration, NULL) == 0 ? 1 : -1;
}
static long WaitFutex(void) {
  long result = syscall(SYS_futex, &futex_word, FUTEX_WAIT, 0, NULL, NULL, 0);
  return result == 0 || errno == EAGAIN ? 1 : -1;
}
static long WaitRead(void) {
  char byte;
  return read(0, &byte, 1);
}
static long WaitAccept(void) {
  int connection = accept(listener, NULL, NULL);
  if (connection >= 0) close(connection);
  return connection >= 0 ? 1 : -1;
}
static long WaitSemaphore(void) {
  struct sembuf down = {.sem_num = 0, .sem_op = -1};
  return semop(semaphore_id, &down, 1) == 0 ? 1 : -1;
}
static long WaitSignal(void) {
  sigset_t wanted;
  sigemptyset(&wanted);
  sigaddset(&wanted, SIGUSR1);
  return sigtimedwait(&wanted, NULL, NULL) == SIGUSR1 ? 1 : -1;
}

static const struct {
  const char *name;
  long (*wait)(void);
} calls[] = {{"epoll_wait", WaitEpoll}, {"epoll_pwait", WaitEpollMask}, {"poll", WaitPoll},
             {"select", WaitSelect},    {"nanosleep", WaitSleep},       {"futex", WaitFutex},
             {"read", WaitRead},        {"accept", WaitAccept},         {"semop", WaitSemaphore},
             {"sigtimedwait", WaitSignal}};

// Ends the wait of the main thread once the input has a byte.
static void *Waker(void *main_thread) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (poll(&input, 1, -1) != 1) {
  }
  futex_word = 1;
  syscall(SYS_futex, &futex_word, FUTEX_WAKE, 1, NULL, NULL, 0);
  struct sembuf up = {.sem_num = 0, .sem_op = 1};
  semop(semaphore_id, &up, 1);
  pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
  int client = socket(AF_UNIX, SOCK_STREAM, 0);
  connect(client, (struct sockaddr *)&address, address_length);
  return NULL;
}

static void SetUp(void) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &blocked, NULL);
  event_poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN};
  epoll_ctl(event_poll, EPOLL_CTL_ADD, 0, &event);
  semaphore_id = semget(IPC_PRIVATE, 1, 0600);
  listener = socket(AF_UNIX, SOCK_STREAM, 0);
  int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "blocked-%d", getpid());
  address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
  bind(listener, (struct sockaddr *)&address, address_length);
  listen(listener, 1);
}

int main(int argc, char **argv) {
  SetUp();
  pthread_t waker, self = pthread_self();
  pthread_create(&waker, NULL, Waker, &self);
  printf("ready\n");
  fflush(stdout);
  int errors = 0;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    if (argc < 2 || strcmp(calls[i].name, argv[1]) != 0) continue;
    if (calls[i].wait() != 1) ++errors;
  }
  pthread_join(waker, NULL);
  semctl(semaphore_id, 0, IPC_RMID);
  printf("errors %d\n", errors);
  return 0;
}

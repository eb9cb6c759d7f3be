// What a call that blocks needs, and a pipe, which most of them need.
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

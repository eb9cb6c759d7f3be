// System calls that block: how each is made, how another thread ends it, and what it gives then. A
// tracer that stops the caller must not be seen in the result. Negative results are errno values;
// kUnsupported: this kernel does not have the call.
#pragma once
#include "blocking_descriptors.h"
#include "blocking_waits.h"

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

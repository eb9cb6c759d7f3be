// Threads that are cancelled, or end from below.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "scopes.h"

namespace {

int pipe_ends[2];
std::atomic<bool> is_inside;
std::atomic<int> thread_left;

void CountLeft(void*) {
  thread_left += left;
}

template <Bottom bottom, int depth>
void* Body(void*) {
  left = 0;
  pthread_cleanup_push(CountLeft, nullptr);
  Descend(depth, bottom);
  pthread_cleanup_pop(0);
  return nullptr;
}

void RunAndJoin(void* (*body)(void*), bool cancel) {
  thread_left = 0;
  is_inside = false;
  pthread_t thread;
  pthread_create(&thread, nullptr, body, nullptr);
  if (cancel) {
    while (!is_inside)
      usleep(100);
    pthread_cancel(thread);
  }
  void* result = nullptr;
  pthread_join(thread, &result);
  printf("  left %d result %ld\n", thread_left.load(), reinterpret_cast<long>(result));
}

NOINLINE void BlockInRead() {
  char byte;
  is_inside = true;
  if (read(pipe_ends[0], &byte, 1) != 0) printf("  read something\n");
}

NOINLINE void BlockInSleep() {
  is_inside = true;
  while (goes_on)
    usleep(1000000);
}

void Cancelled() {
  if (pipe(pipe_ends) != 0) return;
  RunAndJoin(Body<BlockInRead, 15>, true);
  RunAndJoin(Body<BlockInSleep, 3>, true);
}

volatile unsigned long spins;

NOINLINE void Spin() {
  ++spins;
}

// Nothing to clean up but what the library knows of: any instruction may be the last.
NOINLINE void SpinBelow(int depth) {
  if (depth > 0) {
    SpinBelow(depth - 1);
    asm volatile("" ::: "memory");
    return;
  }
  is_inside = true;
  while (goes_on)
    Spin();
}

void* BodyOfSpinner(void*) {
  left = 77;
  pthread_cleanup_push(CountLeft, nullptr);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  void (*volatile spin)(int) = SpinBelow;  // else its caller would not expect it to unwind
  spin(10);
  pthread_cleanup_pop(0);
  return nullptr;
}

void CancelledAnywhere() {
  for (int i = 0; i < 5; ++i)
    RunAndJoin(BodyOfSpinner, true);
}

NOINLINE void ExitThread() {
  pthread_exit(reinterpret_cast<void*>(42));
}

void ThreadExits() {
  RunAndJoin(Body<ExitThread, 0>, false);
  RunAndJoin(Body<ExitThread, 30>, false);
}

}  // namespace

// Looks at a stack that stays, from anywhere and from signal handlers.
#pragma once

#include <execinfo.h>
#include <unistd.h>
#include <unwind.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "scopes.h"

namespace {

extern "C" char __executable_start, etext;

// As far as it can be the same in each run.
uintptr_t Relative(const void* address) {
  auto start = reinterpret_cast<uintptr_t>(&__executable_start);
  auto end = reinterpret_cast<uintptr_t>(&etext);
  auto value = reinterpret_cast<uintptr_t>(address);
  return value >= start && value < end ? value - start : 0;
}

NOINLINE void LookAtStack() {
  void* frames[64];
  int count = backtrace(frames, 64);
  printf("  %d frames:", count);
  for (int i = 0; i < count; ++i)
    printf(" %lx", static_cast<unsigned long>(Relative(frames[i])));
  printf("\n");
}

_Unwind_Reason_Code CountFrame(_Unwind_Context* context, void* count) {
  auto ip = reinterpret_cast<void*>(_Unwind_GetIP(context) - 1);
  if (_Unwind_FindEnclosingFunction(ip) != nullptr) ++*static_cast<int*>(count);
  return _URC_NO_REASON;
}

NOINLINE void CountFrames() {
  int count = 0;
  auto end = _Unwind_Backtrace(CountFrame, &count);
  printf("  %d known, end %d\n", count, end);
}

void Backtraces() {
  for (int depth : {0, 20, 80}) {
    Descend(depth, LookAtStack);
    Descend(depth, CountFrames);
  }
}

void OnSignalLook(int) {
  CountFrames();
}

void OnSignalThrow(int) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  throw std::runtime_error("fault");
}

NOINLINE void Raise() {
  raise(SIGUSR1);
}

NOINLINE void Fault() {
  asm volatile("movl $1, (%0)" ::"r"(0L) : "memory");
}

void InSignalHandlers() {
  signal(SIGUSR1, OnSignalLook);
  Descend(5, Raise);
  signal(SIGSEGV, OnSignalThrow);
  volatile Bottom fault = Fault;
  for (int i = 0; i < 3; ++i) {
    left = 0;
    try {
      Descend(6, fault);
    } catch (const std::exception& error) {
      printf("  %s left %d\n", error.what(), left);
    }
  }
}

}  // namespace

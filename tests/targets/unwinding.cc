// Stacks that are unwound in every way that a C++ program has: each case prints what the language
// and the library promise of it. unwinding [CASE...]
#include <execinfo.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace {

thread_local int left;  // scopes

struct Scope {
  ~Scope() { ++left; }
};

using Bottom = void (*)();

// Calls `bottom` from so many frames below, each with something to clean up.
NOINLINE int Descend(int depth, Bottom bottom) {
  Scope scope;
  if (depth == 0) {
    bottom();
    return 0;
  }
  int below = Descend(depth - 1, bottom);
  asm volatile("" ::: "memory");
  return below + 1;
}

volatile bool goes_on = true;  // but the compiler must not know

NOINLINE void Throw() {
  if (goes_on) throw std::runtime_error("bottom");
}

void Thrown() {
  for (int depth : {0, 1, 50, 500}) {
    left = 0;
    try {
      Descend(depth, Throw);
    } catch (const std::runtime_error& error) {
      printf("  %s left %d\n", error.what(), left);
    }
  }
}

NOINLINE int Rethrow(int depth) {
  Scope scope;
  try {
    return depth == 0 ? Descend(3, Throw) : Rethrow(depth - 1);
  } catch (const std::exception&) {
    throw;
  }
}

void Rethrown() {
  left = 0;
  try {
    Rethrow(20);
  } catch (...) {
    printf("  left %d\n", left);
  }
}

NOINLINE void Wrap(int depth) {
  try {
    if (depth == 0) Throw();
    if (goes_on) Wrap(depth - 1);
  } catch (...) {
    std::throw_with_nested(std::logic_error("level " + std::to_string(depth)));
  }
}

NOINLINE void Unwrap(const std::exception& error) {
  printf("  %s\n", error.what());
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& inner) {
    Unwrap(inner);
  }
}

void Nested() {
  try {
    Wrap(3);
  } catch (const std::exception& error) {
    Unwrap(error);
  }
}

void FromAnotherThread() {
  std::exception_ptr kept;
  std::thread thread([&] {
    try {
      Descend(10, Throw);
    } catch (...) {
      kept = std::current_exception();
    }
  });
  thread.join();
  try {
    std::rethrow_exception(kept);
  } catch (const std::runtime_error& error) {
    printf("  %s\n", error.what());
  }
}

struct Throwing {
  ~Throwing() {
    int under_way = std::uncaught_exceptions();
    try {
      Descend(2, Throw);
    } catch (const std::exception&) {
      printf("  caught while %d under way\n", under_way);
    }
  }
};

void InDestructors() {
  try {
    Throwing one, two;
    Throw();
  } catch (const std::exception&) {
    printf("  and the first\n");
  }
}

int made;

struct Element {
  Scope scope;
  Element() {
    if (++made == 4) Descend(1, Throw);
  }
};

void InConstructors() {
  made = left = 0;
  try {
    delete[] new Element[8];
  } catch (const std::exception&) {
    printf("  made %d left %d\n", made, left);
  }
}

int Compare(const void* one, const void* other) {
  if (*static_cast<const int*>(one) == 7 || *static_cast<const int*>(other) == 7) Throw();
  return *static_cast<const int*>(one) - *static_cast<const int*>(other);
}

void ThroughTheLibrary() {
  int numbers[] = {5, 3, 9, 7, 1};
  try {
    qsort(numbers, 5, sizeof(int), Compare);
  } catch (const std::exception& error) {
    printf("  %s\n", error.what());
  }
  std::once_flag flag;
  int tries = 0;
  for (int i = 0; i < 3; ++i) {
    try {
      std::call_once(flag, [&] {
        if (++tries < 2) Descend(4, Throw);
      });
    } catch (const std::exception& error) {
      printf("  %s\n", error.what());
    }
  }
  printf("  tries %d\n", tries);
}

_Unwind_Exception foreign;
int foreign_ends;

NOINLINE void RaiseForeign() {
  memset(&foreign, 0, sizeof foreign);
  memcpy(&foreign.exception_class, "PROBTEST", 8);
  foreign.exception_cleanup = [](_Unwind_Reason_Code, _Unwind_Exception*) { ++foreign_ends; };
  _Unwind_RaiseException(&foreign);
  printf("  nobody caught it\n");
}

void Foreign() {
  foreign_ends = left = 0;
  try {
    Descend(5, RaiseForeign);
  } catch (...) {
    printf("  left %d\n", left);
  }
  printf("  ended %d\n", foreign_ends);
}

jmp_buf after_forced;
int forced_frames;
uintptr_t forced_until;

_Unwind_Reason_Code Stop(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                         _Unwind_Context* context, void*) {
  ++forced_frames;
  if ((actions & _UA_END_OF_STACK) != 0 || _Unwind_GetCFA(context) >= forced_until)
    longjmp(after_forced, 1);
  return _URC_NO_REASON;
}

NOINLINE void ForceUnwind() {
  memset(&foreign, 0, sizeof foreign);
  _Unwind_ForcedUnwind(&foreign, Stop, nullptr);
}

void Forced() {
  left = forced_frames = 0;
  forced_until = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (setjmp(after_forced) == 0) Descend(12, ForceUnwind);
  printf("  left %d frames %d\n", left, forced_frames);
}

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

void OnTerminate() {
  try {
    std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    printf("  terminate: %s\n", error.what());
  }
  fflush(stdout);
  abort();
}

void InChild(Bottom run) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    std::set_terminate(OnTerminate);
    run();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("  status %x\n", status & 0xff7f);
}

NOINLINE void Promise() noexcept {
  Descend(5, Throw);
}

struct ThrowsAtTheEnd {
  ~ThrowsAtTheEnd() { Throw(); }
};

void Terminations() {
  InChild([] { Descend(3, Promise); });
  InChild([] { Descend(3, Throw); });
  InChild([] { std::thread([] { Descend(3, Throw); }).join(); });
  InChild([] {
    ThrowsAtTheEnd last;
    Throw();
  });
  InChild([] {
    std::set_terminate([] { _Exit(9); });
    Promise();
  });
}

void Exits() {
  InChild([] {
    atexit([] { printf("  left %d\n", left); });
    try {
      Descend(3, Throw);
    } catch (...) {
      Descend(7, [] { exit(3); });
    }
  });
  InChild([] {
    std::thread([] {
      usleep(2000);
      printf("  the last\n");
      exit(4);
    }).detach();
    Descend(9, ExitThread);
  });
}

ucontext_t main_context, other_context;

void BodyOfCoroutine() {
  for (int i = 0; i < 3; ++i) {
    try {
      Descend(4, [] {
        Descend(2, [] { swapcontext(&other_context, &main_context); });
        Throw();
      });
    } catch (const std::exception& error) {
      printf("  %s left %d\n", error.what(), left);
    }
  }
}

void Coroutines() {
  constexpr size_t kSize = 256 * 1024;
  left = 0;
  void* stack = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  getcontext(&other_context);
  other_context.uc_stack.ss_sp = stack;
  other_context.uc_stack.ss_size = kSize;
  other_context.uc_link = &main_context;
  makecontext(&other_context, BodyOfCoroutine, 0);
  for (int i = 0; i < 4; ++i) {
    Descend(i, [] { swapcontext(&main_context, &other_context); });
    try {
      Descend(2, Throw);
    } catch (const std::exception&) {
      printf("  main left %d\n", left);
    }
  }
  munmap(stack, kSize);
}

void ManyThreads() {
  std::atomic<int> caught{0}, all_left{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 50; ++round) {
        try {
          Descend(round % (i + 3), Throw);
        } catch (const std::runtime_error&) {
          ++caught;
        }
      }
      all_left += left;
    });
  }
  for (auto& thread : threads)
    thread.join();
  printf("  caught %d left %d\n", caught.load(), all_left.load());
}

struct Case {
  const char* name;
  Bottom run;
};

const Case kCases[] = {
    {"thrown", Thrown},
    {"rethrown", Rethrown},
    {"nested", Nested},
    {"thread", FromAnotherThread},
    {"destructors", InDestructors},
    {"constructors", InConstructors},
    {"library", ThroughTheLibrary},
    {"foreign", Foreign},
    {"forced", Forced},
    {"cancelled", Cancelled},
    {"anywhere", CancelledAnywhere},
    {"thread_exit", ThreadExits},
    {"backtraces", Backtraces},
    {"handlers", InSignalHandlers},
    {"terminations", Terminations},
    {"exits", Exits},
    {"coroutines", Coroutines},
    {"many", ManyThreads},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Case& one : kCases) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i)
      wanted |= strcmp(argv[i], one.name) == 0;
    if (!wanted) continue;
    printf("%s\n", one.name);
    one.run();
    fflush(stdout);
  }
  return 0;
}

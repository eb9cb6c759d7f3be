// Stacks that are unwound in every way that a C++ program has: each case prints what the language
// and the library promise of it. unwinding [CASE...]
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "unwinding/exceptions.h"
#include "unwinding/looks.h"
#include "unwinding/threads.h"

namespace {

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

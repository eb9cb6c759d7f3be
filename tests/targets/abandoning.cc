// Calls that are left without a return, and calls that return, counted by the program itself.
// Each line of input is "WAY TIMES DEPTH"; the answer is "FUNCTION ENTERED RETURNED" of each.
#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#define PROBED extern "C" __attribute__((noinline))

namespace {

struct Count {
  const char* name;
  std::atomic<long> entered{0}, returned{0};
};
Count counts[] = {{"catcher"}, {"descend"}, {"plain"}, {"bottom"},
                  {"cleaner"}, {"compare"}, {"relay"}};
enum Function { kCatcher, kDescend, kPlain, kBottom, kCleaner, kCompare, kRelay };

void Enter(Function function) {
  ++counts[function].entered;
}
// The last thing that a function does.
void Return(Function function) {
  ++counts[function].returned;
  asm volatile("" ::: "memory");
}

enum class Way { kReturn, kThrow, kLongjmp, kExit, kBlock, kUnhandled, kLibrary, kSwitch };
Way way;
jmp_buf target;
int pipe_ends[2];
std::atomic<bool> is_blocked;
_Unwind_Exception foreign;
ucontext_t outside, inside;

}  // namespace

PROBED int cleaner(int number) {
  Enter(kCleaner);
  Return(kCleaner);
  return number + 1;
}

namespace {
struct Guard {
  int number;
  ~Guard() { number = cleaner(number); }
};
}  // namespace

PROBED int compare(const void* one, const void* other);

PROBED int bottom(int number) {
  Enter(kBottom);
  int numbers[] = {3, 1, 2};
  char byte = 0;
  switch (way) {
    case Way::kThrow:
      throw std::runtime_error("bottom");
    case Way::kLongjmp:
      longjmp(target, 1);
    case Way::kExit:
      pthread_exit(nullptr);
    case Way::kBlock:
      is_blocked = true;
      number += static_cast<int>(read(pipe_ends[0], &byte, 1));
      break;
    case Way::kUnhandled:
      memset(&foreign, 0, sizeof foreign);
      number += _Unwind_RaiseException(&foreign);
      break;
    case Way::kLibrary:
      qsort(numbers, 3, sizeof(int), compare);
      break;
    case Way::kSwitch:
      swapcontext(&inside, &outside);
      break;
    case Way::kReturn:
      break;
  }
  Return(kBottom);
  return number;
}

int compare(const void* one, const void* other) {
  Enter(kCompare);
  if (*static_cast<const int*>(one) != 0) throw std::logic_error("compare");
  Return(kCompare);
  return *static_cast<const int*>(one) - *static_cast<const int*>(other);
}

PROBED int plain(int depth) {
  Enter(kPlain);
  int below = depth == 0 ? bottom(depth) : plain(depth - 1);
  Return(kPlain);
  return below + 1;
}

PROBED int descend(int depth) {
  Enter(kDescend);
  Guard guard{depth};
  int below = depth == 0 ? bottom(depth) : descend(depth - 1);
  Return(kDescend);
  return below + guard.number;
}

PROBED int relay(int depth) {
  Enter(kRelay);
  int below = 0;
  try {
    below = descend(depth);
  } catch (const std::exception&) {
    cleaner(depth);
    throw;
  }
  Return(kRelay);
  return below;
}

PROBED int catcher(int depth) {
  Enter(kCatcher);
  int below = 0;
  try {
    below = relay(depth);
  } catch (const std::exception&) {
    below = cleaner(depth);
  }
  Return(kCatcher);
  return below;
}

namespace {

int depth;

void* Thread(void*) {
  descend(depth);
  return nullptr;
}

void InThread(bool cancel) {
  pthread_t thread;
  is_blocked = false;
  pthread_create(&thread, nullptr, Thread, nullptr);
  if (cancel) {
    while (!is_blocked)
      usleep(100);
    pthread_cancel(thread);
  }
  pthread_join(thread, nullptr);
}

void Body() {
  plain(depth);
  swapcontext(&inside, &outside);
}

void Suspend() {
  constexpr size_t kSize = 256 * 1024;
  getcontext(&inside);
  inside.uc_stack.ss_sp = malloc(kSize);
  inside.uc_stack.ss_size = kSize;
  makecontext(&inside, Body, 0);
  swapcontext(&outside, &inside);
}

void Run(const std::string& word) {
  if (word == "return") way = Way::kReturn, catcher(depth);
  if (word == "throw") way = Way::kThrow, catcher(depth);
  if (word == "library") way = Way::kLibrary, catcher(depth);
  if (word == "unhandled") way = Way::kUnhandled, descend(depth);
  if (word == "exit") way = Way::kExit, InThread(false);
  if (word == "cancel") way = Way::kBlock, InThread(true);
  if (word == "suspend") way = Way::kSwitch, Suspend();
  if (word == "resume") swapcontext(&outside, &inside);
  if (word == "longjmp") {
    way = Way::kLongjmp;
    if (setjmp(target) == 0) plain(depth);
  }
}

}  // namespace

int main() {
  char line[128], word[32];
  int times = 0;
  setvbuf(stdout, nullptr, _IOLBF, 0);
  if (pipe(pipe_ends) != 0) return 1;
  printf("ready\n");
  while (fgets(line, sizeof line, stdin) != nullptr) {
    if (sscanf(line, "%31s %d %d", word, &times, &depth) != 3) return 2;
    for (int i = 0; i < times; ++i)
      Run(word);
    for (const Count& count : counts)
      printf("%s %ld %ld ", count.name, count.entered.load(), count.returned.load());
    printf("\n");
  }
  return 0;
}

// C++ exceptions through probed frames: throw, rethrow, nested, destructors on the way, a foreign
// type, and a noexcept function that catches its own. exceptions ROUNDS [wait]
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "gate.h"

static unsigned long destroyed, caught, entered;

struct Guard {
  ~Guard() { ++destroyed; }
};

extern "C" {
__attribute__((noinline)) int thrower(int depth) {
  Guard guard;
  ++entered;
  if (depth == 0) throw std::runtime_error("bottom");
  int below = thrower(depth - 1);
  asm volatile("" ::: "memory");
  return below + 1;
}
__attribute__((noinline)) int rethrower(int depth) {
  ++entered;
  try {
    return thrower(depth);
  } catch (const std::exception& error) {
    ++caught;
    throw;
  }
}
__attribute__((noinline)) int nested(int depth) {
  ++entered;
  try {
    try {
      return rethrower(depth);
    } catch (const std::runtime_error&) {
      ++caught;
      throw 42;
    }
  } catch (int value) {
    ++caught;
    return value + depth;
  }
}
__attribute__((noinline)) int silent(int depth) noexcept {
  ++entered;
  try {
    return thrower(depth);
  } catch (...) {
    return -depth;
  }
}
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 10;
  WaitIfTold(argc, argv);
  long sum = 0;
  for (int i = 0; i < rounds; ++i)
    sum += nested(i % 4) * 2 + silent(i % 3);
  printf("entered %lu caught %lu destroyed %lu sum %ld\n", entered, caught, destroyed, sum);
  return 0;
}

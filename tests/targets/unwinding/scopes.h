// Frames with something to clean up, which count what was cleaned up.
#pragma once

#include <stdexcept>

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

}  // namespace

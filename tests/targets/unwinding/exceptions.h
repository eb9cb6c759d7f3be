// Exceptions of all kinds, through frames of all kinds, and what unwinds like one.
#pragma once

#include <setjmp.h>
#include <unwind.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "scopes.h"

namespace {

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

}  // namespace

#pragma once
// The outcome of a system call whose failure is often normal (a traced thread may die at any
// moment): 0 or the errno, captured at the call.

namespace probed::sys {

struct [[nodiscard]] Errno {
  int value = 0;
  bool ok() const { return value == 0; }
  // For calls whose failure changes nothing: a dead thread needs no resuming.
  void Ignore() const {}
};

}  // namespace probed::sys

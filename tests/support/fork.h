#pragma once
// fork(2) for tests. A failure ends the test program: the -1 that it returns would mean every
// process of the machine to a later kill(2).

#include <sys/types.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace probed {

inline pid_t ForkOrDie() {
  const pid_t pid = ::fork();
  if (pid >= 0) return pid;
  std::perror("fork");
  std::abort();
}

}  // namespace probed

#include "engine/sys/wait.h"

#include <sys/wait.h>

#include <cerrno>

namespace probed::sys {

Waited Wait(pid_t tid, WaitMode mode) {
  int flags = __WALL | __WNOTHREAD | (mode == WaitMode::kPoll ? WNOHANG : 0);
  int status = 0;
  pid_t result = ::waitpid(tid, &status, flags);
  if (result > 0) return {Waited::Outcome::kStatus, result, status};
  if (result == 0) return {Waited::Outcome::kNothing, 0, 0};
  return {errno == EINTR ? Waited::Outcome::kInterrupted : Waited::Outcome::kNoTracees, 0, 0};
}

}  // namespace probed::sys

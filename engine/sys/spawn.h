#pragma once
// A child that waits, before it execs, until it is told to: by a pipe, because a SIGSTOP would
// show.

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::sys {

struct SpawnRequest {
  std::vector<std::string> argv;         // argv[0] is searched for in PATH of `environment`
  std::vector<std::string> environment;  // empty: ours
  std::string working_directory;         // empty: ours
  uid_t uid = 0;
  gid_t gid = 0;
};

class SpawnedChild {
 public:
  // The calling thread becomes the parent, and so the one that must wait for the child. The child
  // has default signal handlers and an empty mask, and our standard streams only.
  static Result<SpawnedChild> Fork(const SpawnRequest& request);

  pid_t pid() const { return pid_; }
  void LetExec();
  // After the child has exec'ed or ended: the errno of the step that failed, 0 when none did.
  int FailureErrno();

 private:
  SpawnedChild(pid_t pid, UniqueFd go, UniqueFd failure);
  pid_t pid_;
  UniqueFd go_;
  UniqueFd failure_;
};

}  // namespace probed::sys

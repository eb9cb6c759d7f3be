#pragma once
// Processes and threads as file descriptors, which stay true when an id is used again.
// pidfd_open(2).

#include <sys/types.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::sys {

Result<UniqueFd> OpenProcess(pid_t pid);
// Of any thread. Kernels before 6.9 know only a process's first.
Result<UniqueFd> OpenThread(pid_t tid);
// Readable once that thread of ours has ended, no matter how many others of the process have not.
// Kernels before 6.9 know no such thing: then, once the process has.
Result<UniqueFd> OpenEndOfThread(pid_t tid);

}  // namespace probed::sys

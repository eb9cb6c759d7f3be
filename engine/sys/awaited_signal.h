#pragma once
// Whether somebody in a process takes a signal without a handler: by sigwait(3) and its kin just
// now, or by a signalfd(2) that is open. Reads /proc; bounded.

#include <sys/types.h>

#include <vector>

namespace probed::sys {

bool AwaitsSignal(pid_t pid, int signal);
// By sigwait(3) and its kin.
std::vector<pid_t> ThreadsThatAwait(pid_t pid, int signal);

}  // namespace probed::sys

#pragma once
// Why a process cannot be attached to, as a person would want to be told. Reads /proc only.

#include <sys/types.h>

#include "base/result.h"
#include "engine/sys/proc.h"

namespace probed::tracee {

// What can be said before trying: PROCESS_NOT_FOUND, INIT, SELF, ANCESTOR_TRACES_US, KERNEL_THREAD,
// ZOMBIE, ALREADY_TRACED.
Status CheckAttachable(pid_t pid);

// PTRACE_SEIZE of a thread with this status was refused: ALREADY_TRACED, YAMA_SCOPE, UID_MISMATCH,
// NOT_DUMPABLE or MISSING_CAPABILITY.
Error DiagnoseRefusal(pid_t pid, const sys::TaskStatus& target, int error_number);

}  // namespace probed::tracee

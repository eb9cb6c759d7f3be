#pragma once
// Why a process cannot be attached to, as a person would want to be told. Reads /proc only.

#include <sys/types.h>

#include "base/result.h"
#include "engine/sys/proc.h"

namespace probed::tracee {

// What can be said before trying: PROCESS_NOT_FOUND, INIT, SELF, ANCESTOR_TRACES_US, KERNEL_THREAD,
// ZOMBIE, ALREADY_TRACED.
Status CheckAttachable(pid_t pid);

// How we stand to a process that the kernel does not let us attach to.
struct Standing {
  bool privileged = false;  // CAP_SYS_PTRACE
  uid_t uid = 0;
  int yama_scope = -1;  // -1: no Yama
  bool target_is_dumpable = true;
  bool ptrace_is_filtered = false;  // by our own seccomp filter
};
// ALREADY_TRACED, SECCOMP_FILTER, YAMA_SCOPE, UID_MISMATCH, NOT_DUMPABLE or MISSING_CAPABILITY: the
// first that alone would suffice. Pure but for the name of the tracer.
Error DescribeRefusal(pid_t pid, const sys::TaskStatus& target, const Standing& ours);

// The same for a PTRACE_SEIZE that was refused with `error_number` just now.
Error DiagnoseRefusal(pid_t pid, const sys::TaskStatus& target, int error_number);

}  // namespace probed::tracee

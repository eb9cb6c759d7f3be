#pragma once
// The permission rule: a caller may trace what ptrace(2) would let that user trace. Pure.

#include "daemon/access/caller.h"
#include "daemon/access/process_credentials.h"

namespace probed::daemon {

// What a refused caller may try; a private daemon is nobody's but the caller's.
inline constexpr char kAdminHint[] =
    "as root, or through a daemon of root's as a member of its admin group (probed-admin)";

// Follows __ptrace_may_access() and cap_ptrace_access_check() for a caller without other
// capabilities. Whoever has made a user name space has every capability in it (user_namespaces(7)).
// Yama's scope 1 speaks of one tracing process and its children, which a request through a daemon
// has not, so it does not restrict; scope 2 leaves tracing to admins.
// Reasons: UID_MISMATCH, NOT_DUMPABLE, MISSING_CAPABILITY, YAMA_SCOPE, PROCESS_NOT_FOUND.
Status MayTrace(const Caller& caller, const ProcessCredentials& process, int yama_scope);

}  // namespace probed::daemon

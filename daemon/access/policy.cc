#include "daemon/access/policy.h"

#include <algorithm>

#include <fmt/format.h>

namespace probed::daemon {
namespace {

constexpr int kYamaAdminOnly = 2;

Error Denied(std::string reason, std::string message, std::string hint) {
  return Error{
      ErrorCode::kPermissionDenied, std::move(reason), std::move(message), std::move(hint), {}};
}

template <class Ids, class Id>
bool AllAre(const Ids& ids, Id id) {
  return std::all_of(ids.begin(), ids.end(), [id](Id other) { return other == id; });
}

}  // namespace

Status MayTrace(const Caller& caller, const ProcessCredentials& process, int yama_scope) {
  if (caller.admin || caller.traces_all) return {};
  const std::string admin_hint(kAdminHint);
  if (process.namespace_owner == caller.uid) return {};
  if (!AllAre(process.uids, caller.uid) || !AllAre(process.gids, caller.gid))
    return Denied("UID_MISMATCH",
                  fmt::format("the process runs with uid {} gid {}, you are uid {} gid {}",
                              process.uids[1], process.gids[1], caller.uid, caller.gid),
                  admin_hint);
  if (process.namespace_owner)
    return Denied("MISSING_CAPABILITY",
                  fmt::format("the process lives in a user name space that uid {} has made",
                              *process.namespace_owner),
                  admin_hint);
  if (process.permitted_capabilities != 0)
    return Denied("MISSING_CAPABILITY", "the process has capabilities that you do not have",
                  admin_hint);
  if (process.ended)
    return Error{ErrorCode::kNotFound,
                 "PROCESS_NOT_FOUND",
                 "the process has ended, or its first thread has",
                 "",
                 {}};
  if (!process.dumpable)
    return Denied("NOT_DUMPABLE",
                  "the process is not dumpable (it changed ids or called prctl PR_SET_DUMPABLE)",
                  admin_hint);
  if (yama_scope >= kYamaAdminOnly)
    return Denied("YAMA_SCOPE",
                  fmt::format("kernel.yama.ptrace_scope is {}: only admins may trace", yama_scope),
                  admin_hint);
  return {};
}

}  // namespace probed::daemon

#include "daemon/access/authorizer.h"

#include "daemon/access/policy.h"
#include "daemon/access/process_credentials.h"
#include "engine/engine.h"
#include "engine/sys/proc.h"

namespace probed::daemon {
namespace {

Error NotForYou() {
  return Error{ErrorCode::kPermissionDenied,
               "KERNEL_PROBES_NEED_ADMIN",
               "probes in the kernel see every process",
               kAdminHint,
               {}};
}

}  // namespace

Result<event::TargetId> Authorizer::CheckProcess(const Caller& caller, pid_t pid) const {
  PROBED_TRY(const ProcessCredentials process, ReadCredentials(pid));
  PROBED_RETURN_IF_ERROR(MayTrace(caller, process, sys::YamaScope()));
  return event::TargetId{pid, process.start_ticks};
}

Status Authorizer::CheckTarget(const Caller& caller, event::TargetId target) const {
  if (caller.admin) return {};
  if (target == engine::kKernelTarget) return NotForYou();
  auto process = ReadCredentials(target.pid);
  if (process.ok() && process->start_ticks == target.start_ticks && !process->ended)
    return MayTrace(caller, *process, sys::YamaScope());
  std::lock_guard lock(mutex_);
  auto owner = owners_.find(target);
  if (owner != owners_.end() && owner->second == caller.uid) return {};
  return Error{ErrorCode::kPermissionDenied,
               "TARGET_NOT_VISIBLE",
               "no such target, or it is another user's",
               "'probectl targets' lists those that you may see (ListTargets in the API)",
               {}};
}

void Authorizer::Remember(event::TargetId target, const Caller& owner) {
  std::lock_guard lock(mutex_);
  owners_.emplace(target, owner.uid);
}

void Authorizer::Forget(event::TargetId target) {
  std::lock_guard lock(mutex_);
  owners_.erase(target);
}

}  // namespace probed::daemon

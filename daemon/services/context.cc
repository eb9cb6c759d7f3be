#include "daemon/services/context.h"

#include <grpcpp/server_context.h>

#include <map>

#include "daemon/audit.h"
#include "daemon/convert/names.h"

namespace probed::daemon {

Result<engine::TargetInfo> FindTarget(ServiceContext& context, event::TargetId target) {
  for (engine::TargetInfo& info : context.engine.ListTargets())
    if (info.id == target) return std::move(info);
  return Error{ErrorCode::kNotFound,
               "TARGET_NOT_FOUND",
               "probed is not attached to " + TargetName(target),
               "attach to it first: probectl attach --pid PID (AttachTarget in the API)",
               {{"target", TargetName(target)}}};
}

void EndSession(ServiceContext& context, const Caller& caller, const std::string& session) {
  if (session.empty()) return;
  std::map<event::TargetId, std::string> executables;
  for (const engine::TargetInfo& target : context.engine.ListTargets())
    executables[target.id] = target.executable;
  for (event::TargetId target : context.sessions.End({caller.uid, session})) {
    context.authorizer.Forget(target);
    Audit({caller, "end-session", target, executables[target], 0, nullptr});
  }
}

void EndSessionOfGone(const grpc::ServerContext& call, ServiceContext& context,
                      const Caller& caller, const std::string& session) {
  if (call.IsCancelled()) EndSession(context, caller, session);
}

}  // namespace probed::daemon

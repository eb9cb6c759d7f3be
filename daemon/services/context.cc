#include "daemon/services/context.h"

#include "daemon/convert/names.h"

namespace probed::daemon {

Result<engine::TargetInfo> FindTarget(ServiceContext& context, event::TargetId target) {
  for (engine::TargetInfo& info : context.engine.ListTargets())
    if (info.id == target) return std::move(info);
  return Error{ErrorCode::kNotFound,
               "TARGET_NOT_FOUND",
               "probed is not attached to " + TargetName(target),
               "AttachTarget first",
               {{"target", TargetName(target)}}};
}

}  // namespace probed::daemon

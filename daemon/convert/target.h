#pragma once
// Targets between the engine and the API. Pure.

#include "daemon/access/caller.h"
#include "engine/engine.h"
#include "probed/v1/targets.pb.h"

namespace probed::daemon {

v1::Target ToProto(const engine::TargetInfo& target);
v1::DetachTargetResponse ToProto(const engine::DetachReport& report);

Result<engine::AttachOptions> ToOptions(const v1::AttachTargetRequest& request);
// The program runs as the caller.
Result<engine::LaunchOptions> ToOptions(const v1::LaunchTargetRequest& request,
                                        const Caller& caller);

}  // namespace probed::daemon

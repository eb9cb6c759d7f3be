#pragma once
// Targets and processes between the engine and the API.

#include <chrono>

#include "daemon/access/caller.h"
#include "daemon/process_selection.h"
#include "engine/engine.h"
#include "probed/v1/targets.pb.h"

namespace probed::daemon {

v1::Target ToProto(const engine::TargetInfo& target);
v1::DetachTargetResponse ToProto(const engine::DetachReport& report);

Result<engine::AttachOptions> ToOptions(const v1::AttachTargetRequest& request);
// The program runs as the caller.
Result<engine::LaunchOptions> ToOptions(const v1::LaunchTargetRequest& request,
                                        const Caller& caller);

// INVALID_SELECTION.
Result<ProcessSelection> ToSelection(const v1::FindProcessesRequest& request);
Result<std::chrono::milliseconds> ToWait(const v1::FindProcessesRequest& request);
// What /proc says of it now.
v1::Process ToProcess(event::TargetId id);

}  // namespace probed::daemon

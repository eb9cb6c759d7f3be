#pragma once
// Resource names: targets/PID-START and targets/PID-START/probes/ID, START being field 22 of
// /proc/PID/stat; probes in the kernel belong to targets/kernel. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/engine.h"

namespace probed::daemon {

struct ProbeRef {
  event::TargetId target;
  event::ProbeId probe = 0;
  bool operator==(const ProbeRef&) const = default;
};

std::string TargetName(event::TargetId target);
std::string ProbeName(const ProbeRef& probe);

// INVALID_NAME for anything that is not exactly what the functions above write.
Result<event::TargetId> ParseTargetName(std::string_view name);
Result<ProbeRef> ParseProbeName(std::string_view name);

// A list request's parent: a target, or nothing for the wildcard "targets/-".
Result<std::optional<event::TargetId>> ParseParent(std::string_view name);

}  // namespace probed::daemon

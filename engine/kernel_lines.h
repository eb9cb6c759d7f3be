#pragma once
// Parts the lines of a create request: those that the kernel is to have, and those that are ours.

#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/kernel/control.h"
#include "engine/probe/file_cache.h"
#include "engine/uprobe_place.h"

namespace probed::engine {

struct PartedLines {
  std::vector<kernel::ProbeRequest> kernel;
  std::vector<std::string> user;  // by line; empty where the line is the kernel's
  std::vector<LineError> errors;
};

// Where user-side lines are to become kernel uprobes they are rewritten with a path of the daemon's
// own view of files and a number; `target` (or the daemon, without one) is whose names they use.
// PLACE_IN_USE: it is in code of `ours`.
PartedLines PartLines(TargetId target, const std::vector<std::string>& lines,
                      const CreateOptions& options, probe::FileCache& files,
                      const std::vector<ChangedCode>& ours);

// What a refusal of the kernel's side is at the facade.
LineError ToLineError(kernel::Refusal refusal);

}  // namespace probed::engine

#pragma once
// The daemon may read every file; its answers must not tell a caller what the caller could not
// read.

#include <optional>
#include <string>

#include "daemon/access/caller.h"
#include "engine/event/event.h"

namespace probed::daemon {

// Judges the permission bits of the file and of every directory above it. In a target with mounts
// or a root of its own only admins may name files. FILE_NOT_READABLE, the same whether or not the
// file exists. A check by name: a caller who swaps directories between check and use can still win.
Status CheckReadable(const Caller& caller, const std::string& path,
                     std::optional<event::TargetId> target);

}  // namespace probed::daemon

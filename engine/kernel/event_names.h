#pragma once
// Events that the kernel has already, by name: GROUP:EVENT, with wildcards. Pure but for Tracefs.

#include <string>
#include <string_view>
#include <vector>

#include "engine/kernel/definition_line.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

// Which of `available` (GROUP:EVENT lines, as in available_events) `pattern` means, in their names'
// order; no event of any daemon's own.
std::vector<KernelName> MatchEvents(std::string_view available, const std::string& pattern);

// NO_SUCH_EVENT, TOO_MANY_EVENTS.
Result<std::vector<KernelName>> FindEvents(const Tracefs& tracefs, const std::string& pattern);

}  // namespace probed::kernel

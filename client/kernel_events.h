#pragma once
// Which event names the running kernel has taken, as far as tracefs can be read. Touches nothing.

#include <string>

namespace probed::client {

// True for events of the kernel that no uprobe line made, such as sched/sched_switch.
bool IsKernelEvent(const std::string& group, const std::string& event);

}  // namespace probed::client

#pragma once
// The kernel's list of definitions, and taking one off it.

#include <string>
#include <vector>

#include "engine/kernel/tracefs.h"

namespace probed::kernel {

struct DynamicEvent {
  std::string kind;  // "p", "r100", "e", ...
  std::string group;
  std::string event;
  std::string body;  // place and arguments
};

// "KIND:GROUP/EVENT BODY"; nothing without a group and an event.
std::vector<DynamicEvent> ParseDynamicEvents(std::string_view text);
// What there is; empty where the kernel has no such file.
std::vector<DynamicEvent> ListDynamicEvents(const Tracefs& tracefs);

// Refused with EBUSY while the event is enabled anywhere.
Status RemoveDynamicEvent(const Tracefs& tracefs, const std::string& group,
                          const std::string& event);

}  // namespace probed::kernel

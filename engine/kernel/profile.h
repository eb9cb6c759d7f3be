#pragma once
// How often the kernel's probes were hit and missed: kprobe_profile and uprobe_profile.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/kernel/dynamic_events.h"
#include "engine/kernel/tracefs.h"

namespace probed::kernel {

struct ProbeCounts {
  uint64_t hits = 0;
  uint64_t missed = 0;
};
using Profile = std::map<std::pair<std::string, std::string>, ProbeCounts>;  // by group and event

// A profile names events without their groups, in the order of the definitions `events`, one line
// each. False when the two do not fit together: somebody has changed the list in between.
bool ParseProfile(std::string_view text, const std::vector<DynamicEvent>& events, Profile& into);

// Of all kprobe and uprobe events there are.
Profile ReadProfile(const Tracefs& tracefs);

}  // namespace probed::kernel

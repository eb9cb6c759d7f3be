#pragma once
// Lines of the verbs that list things, without newline. Pure.

#include <string>

#include "probed/v1/probes.pb.h"
#include "probed/v1/targets.pb.h"

namespace probed::client {

// NAME STATE MECHANISM DEFINITION [(REASON)]
std::string ProbeLine(const v1::Probe& probe);
std::string ProbeJson(const v1::Probe& probe);

// The kprobes `list` file's columns, then mechanism and reason:
// ADDRESS  k|r  SYMBOL+0xOFF  [DISABLED][GONE][OPTIMIZED]  MECHANISM: REASON
std::string SiteLine(const v1::Site& site);
std::string SiteJson(const v1::Site& site);

// uprobe_profile's columns, misses as kprobe_profile has them, losses and the mechanism:
// PATH EVENT HITS MISSED LOST MECHANISM, then "unwound N" and what was dropped on purpose
std::string ProfileLine(const v1::Probe& probe);

// " (N unwound)" of those missed, or nothing.
std::string UnwoundOf(const v1::ProbeCounters& counters);

// "  filtered N  sampled out N", each only where there are any.
std::string DroppedOnPurpose(const v1::Probe& probe);

std::string TargetLine(const v1::Target& target);
std::string TargetJson(const v1::Target& target);

}  // namespace probed::client

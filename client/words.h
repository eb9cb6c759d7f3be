#pragma once
// The words of the design for the API's enumerations.

#include <string_view>

#include "probed/v1/common.pb.h"
#include "probed/v1/probes.pb.h"
#include "probed/v1/targets.pb.h"

namespace probed::client {

std::string_view Word(v1::Mechanism mechanism);
// What that costs, in a few words.
std::string_view Meaning(v1::Mechanism mechanism);
std::string_view Word(v1::Probe::State state);
std::string_view Word(v1::Target::State state);
std::string_view Word(v1::ProbeKind kind);
std::string_view Word(v1::Dialect dialect);

}  // namespace probed::client

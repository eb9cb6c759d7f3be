#pragma once
// Probes as `define -f` takes them back.

#include <string>

#include "probed/v1/probes.pb.h"

namespace probed::client {

// The definition, behind a comment line with the options of `define` that belong to it, if any.
std::string DefinitionLines(const v1::Probe& probe);

}  // namespace probed::client

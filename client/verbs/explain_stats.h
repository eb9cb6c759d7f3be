#pragma once
// The table of `probectl explain --stats`. Pure.

#include <string>

#include "probed/v1/symbols.pb.h"

namespace probed::client {

// Without a newline at the end.
std::string StatsText(const v1::ExplainFileResponse& file);
// One JSON object.
std::string StatsJson(const v1::ExplainFileResponse& file);

}  // namespace probed::client

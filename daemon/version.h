#pragma once

#include <string_view>

namespace probed::daemon {

std::string_view Version();  // of the project, from the build

}  // namespace probed::daemon

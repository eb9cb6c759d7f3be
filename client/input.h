#pragma once
// Text that a verb reads: a file or standard input.

#include <string>

#include "base/result.h"

namespace probed::client {

// "-" is standard input, whatever it is (a pipe, a socket, a terminal). At most 64 MiB.
Result<std::string> ReadInput(const std::string& path);

}  // namespace probed::client

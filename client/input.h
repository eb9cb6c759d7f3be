#pragma once
// Text that a verb reads: a file or standard input.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::client {

// "-" is standard input, whatever it is (a pipe, a socket, a terminal). At most 64 MiB.
Result<std::string> ReadInput(const std::string& path);

// The lines of a text, each with its newline, which the last may lack.
std::vector<std::string_view> RawLines(std::string_view text);

}  // namespace probed::client

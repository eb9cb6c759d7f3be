#pragma once
// Words of a command line that CLI11 would take otherwise than they were meant: what the shell
// makes of `--pid $(pidof NAME)`.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace probed::client {

// Pids that are words of their own behind --pid belong to its list.
std::vector<std::string> WithJoinedPids(const CLI::App& app, std::vector<std::string> words);

// An option that takes a value and is followed by another option instead, which would be the value.
std::optional<Error> FindMissingValue(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace probed::client

#pragma once
// What is wrong with a command line, with the nearest word that would have been right.

#include <string>
#include <vector>

#include "base/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace probed::client {

// For an `error` that CLI11 threw while `app` parsed `words`; not for --help and --version.
Error DescribeParseError(const CLI::App& app, const CLI::ParseError& error,
                         const std::vector<std::string>& words);

}  // namespace probed::client

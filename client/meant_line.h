#pragma once
// What somebody who has just come from another tool, or from the kernel's functions, may have meant
// by a line that was refused. Pure.

#include <string>
#include <vector>

#include "client/remote_error.h"
#include "engine/lang/definition_set.h"

namespace probed::client {

// The line as it may have been meant; empty: no idea. `program` is the file that is being traced.
std::string MeantLine(const std::string& line, lang::Dialect dialect, const std::string& program);

// Suggests it where the refused line is one of `lines`.
void SuggestMeantLine(const std::vector<std::string>& lines, lang::Dialect dialect,
                      const std::string& program, RemoteError& error);

}  // namespace probed::client

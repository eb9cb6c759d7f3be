#pragma once
// Relative paths on the command line: the daemon has a directory of its own, so it gets absolute
// ones, from where we are, as the kernel takes them from where the writer is.

#include <string>
#include <string_view>
#include <vector>

#include "client/remote_error.h"
#include "engine/lang/definition_set.h"

namespace probed::client {

// Absolute, from the working directory. Not cleaned of links and "..", which the daemon follows.
std::string AbsolutePath(std::string_view path);

// The same of a file that a target (if not empty) is asked for. A bare name means what the target
// has mapped, or a file in the usual directories; one of ours only if it is here and there is none.
std::string AbsoluteFile(const std::string& path, const std::string& target);

// PATH[:OFFSET]. A bare name is left alone: it means what a process has mapped under that name.
std::string AbsolutePlace(std::string_view place, lang::Dialect dialect);

// A definition line (or a deletion's) whose place has an absolute path; the rest is as it was.
std::string AbsoluteLine(const std::string& line, lang::Dialect dialect);

// What was said of the absolute ones, as if it were of `lines`: commands and columns of carets.
void ShowAsTyped(const std::vector<std::string>& lines, lang::Dialect dialect, RemoteError& error);

}  // namespace probed::client

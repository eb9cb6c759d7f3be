#pragma once
// Whole-file reads with a bound. Thread-safe. Errors carry errno and the path.

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed {

// Opens with O_CLOEXEC added to `flags`.
Result<UniqueFd> OpenFile(const std::string& path, int flags);

// Reads to the end; more than `limit` bytes is an error (FILE_TOO_LARGE), never a silent cut.
Result<std::string> ReadFile(const std::string& path, size_t limit = 64u << 20);

}  // namespace probed

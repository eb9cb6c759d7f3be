#pragma once
// Where a function's code ends, when the tables of its file do not agree. Any thread.

#include "base/result.h"
#include "elf/file.h"

namespace probed::probe {

// Longer functions are generated code; decoding them for one probe is not worth the wait.
inline constexpr uint64_t kLongestFunction = 1 << 20;

// The function that begins at `start`. The larger of two sizes counts, if all of it decodes and no
// other function begins in it: what is left out may return, too. FUNCTION_END_UNKNOWN,
// FUNCTION_END_DISPUTED.
Result<elf::FunctionBounds> ExtentOf(const elf::File& file, LinkAddr start);

}  // namespace probed::probe

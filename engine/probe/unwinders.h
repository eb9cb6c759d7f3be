#pragma once
// Where a file's code walks stacks, and so must be shown real return addresses. Any thread.

#include <vector>

#include "base/address.h"
#include "elf/file.h"
#include "engine/probe/site.h"

namespace probed::probe {

struct UnwindPoint {
  FileOffset offset;
  Hook hook;
};

// Level I of the C++ ABI for exceptions, where a handler begins, and where a walk that only looks
// ends. By symbol, so a stripped file with an unwinder linked into it is not recognised.
std::vector<UnwindPoint> FindUnwindPoints(const elf::File& file);

}  // namespace probed::probe

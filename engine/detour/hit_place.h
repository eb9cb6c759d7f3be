#pragma once
// Where a block of code runs: at a function's entry, or when it returns.

#include <cstdint>

#include "engine/detour/detour.h"

namespace probed::detour {

struct HitPlace {
  uint64_t function = 0;  // of an entry probe: the site
  bool is_return = false;
  SharedMemory memory;
  bool has_rdpid = false;
};

}  // namespace probed::detour

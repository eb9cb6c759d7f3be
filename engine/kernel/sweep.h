#pragma once
// What daemons that were killed have left in tracefs. Only what bears our names and belongs to
// nobody alive is touched. Any thread, any number of daemons at once.

#include <cstdint>
#include <vector>

#include "engine/kernel/tracefs.h"

namespace probed::kernel {

struct SweepReport {
  uint32_t instances = 0;
  uint32_t definitions = 0;
  std::vector<Error> errors;
};

SweepReport SweepAbandoned(const Tracefs& tracefs);

}  // namespace probed::kernel

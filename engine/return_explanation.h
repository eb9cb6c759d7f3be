#pragma once
// What a return probe at a place of a file would be, in words. Any thread.

#include <string>

#include "elf/file.h"
#include "engine/probe/boundaries.h"

namespace probed::engine {

struct ReturnExplanation {
  std::string probe;   // as `r:` alone makes it
  std::string at_ret;  // with --at-ret
};

ReturnExplanation ExplainReturn(const elf::File& file, FileOffset offset,
                                probe::Boundaries& boundaries);

}  // namespace probed::engine

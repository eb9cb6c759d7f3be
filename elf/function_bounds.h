#pragma once
// How far the function around an address reaches, from everything the file still says.

#include <optional>
#include <span>

#include "elf/frame_index.h"
#include "elf/headers.h"
#include "elf/symbol_index.h"

namespace probed::elf {

// Borrowed for the call.
struct BoundsSources {
  const SymbolIndex& symbols;
  const FrameIndex& frames;
  const Headers& headers;
  std::span<const Segment> segments;
};

// A sized symbol, else an unwind entry, else an unsized symbol up to what comes next.
std::optional<FunctionBounds> FindFunctionBounds(const BoundsSources& sources, LinkAddr address);

}  // namespace probed::elf

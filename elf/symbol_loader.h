#pragma once
// All symbols that a file has or that were moved out of it.

#include <span>
#include <vector>

#include "elf/debug_file.h"
#include "elf/symbol.h"

namespace probed::elf {

// .dynsym and .symtab; for a stripped file also its debug file, else its .gnu_debugdata, else the
// Go runtime's table. Functions outside of executable segments are left out.
std::vector<Symbol> LoadSymbols(const DebugFileRequest& file, std::span<const Segment> segments);

}  // namespace probed::elf

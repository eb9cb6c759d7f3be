#pragma once
// What the dynamic linker sees: tables found through PT_DYNAMIC, so also in a file whose section
// headers were stripped. gABI, "Dynamic Section"; DT_GNU_HASH as the GNU linker writes it.

#include <span>

#include "elf/symbol_table.h"

namespace probed::elf {

SymbolTable ReadDynamicTable(const Handle& elf, const Headers& headers,
                             std::span<const Segment> segments);

}  // namespace probed::elf

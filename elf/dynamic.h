#pragma once
// What the dynamic linker sees: tables found through PT_DYNAMIC, so also in a file whose section
// headers were stripped. gABI, "Dynamic Section"; DT_GNU_HASH as the GNU linker writes it.

#include <span>

#include "elf/headers.h"
#include "elf/symbol_table.h"
#include "elf/versions.h"

namespace probed::elf {

struct DynamicTables {
  RawSymbolTable symbols;
  RawVersions versions;
};

DynamicTables ReadDynamicTables(const Image& image, const Headers& headers,
                                std::span<const Segment> segments);

}  // namespace probed::elf

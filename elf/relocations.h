#pragma once
// What the dynamic linker will make point where. gABI, "Relocation"; x86-64 psABI, 4.4.

#include <span>
#include <vector>

#include "elf/headers.h"

namespace probed::elf {

// The link addresses that words of the module will hold, itself being meant: symbols and addends of
// DT_RELA. (DT_RELR keeps them in the words themselves.) In the table's order, with repeats.
std::vector<LinkAddr> ReadRelocatedAddresses(const Image& image, const Headers& headers,
                                             std::span<const Segment> segments);

}  // namespace probed::elf

#pragma once
// Where the C++ runtime, and others that use its tables, enter a function to handle an exception.
// "Exception Handling Tables" of the Itanium C++ ABI as GCC writes them (.gcc_except_table).

#include <cstdint>
#include <span>
#include <vector>

#include "base/address.h"

namespace probed::elf {

// The landing pads of one function. `table`: the bytes from its table on, linked at `address`;
// `function`: where its FDE starts, which landing pads are counted from unless the table says
// otherwise. A table that makes no sense ends early.
std::vector<LinkAddr> ReadLandingPads(std::span<const uint8_t> table, LinkAddr address,
                                      LinkAddr function);

}  // namespace probed::elf

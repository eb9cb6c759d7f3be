#pragma once
// Names near one that is not there.

#include <string>
#include <string_view>
#include <vector>

#include "elf/symbol.h"

namespace probed::elf {

// At most `limit`, nearest first: by edit distance, then names that contain what was typed. C++
// functions are named as people write them, without parameters.
std::vector<std::string> SuggestNames(const std::vector<Symbol>& functions, std::string_view typed,
                                      size_t limit);

}  // namespace probed::elf

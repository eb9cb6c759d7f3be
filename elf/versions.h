#pragma once
// GNU symbol versions. LSB Core, "Symbol Versioning".

#include <string_view>
#include <unordered_map>

#include "elf/symbol_table.h"

namespace probed::elf {

// Set in an index of .gnu.version: name@VERSION, not the default name@@VERSION.
constexpr unsigned kHiddenVersion = 0x8000;

// By index without that bit. The names point into the table's strings.
std::unordered_map<unsigned, std::string_view> ReadVersionNames(const SymbolTable& table);

}  // namespace probed::elf

#pragma once
// Symbol tables as the file has them, one at a time. gABI, "Symbol Table"; LSB, "Symbol
// Versioning".

#include <span>
#include <vector>

#include "elf/headers.h"
#include "elf/symbol.h"

namespace probed::elf {

// One table and what names the versions of its symbols. Null: not there. Borrowed from a handle.
struct SymbolTable {
  Elf_Data* symbols = nullptr;
  Elf_Data* strings = nullptr;
  Elf_Data* versions = nullptr;     // .gnu.version, an index for each symbol
  Elf_Data* definitions = nullptr;  // .gnu.version_d
  Elf_Data* needs = nullptr;        // .gnu.version_r
};

std::vector<Symbol> ReadSymtab(const Image& image, const Headers& headers, SymbolSource source);

// .dynsym with versions: by sections, or by PT_DYNAMIC when the section headers are gone.
std::vector<Symbol> ReadDynsym(const Image& image, const Headers& headers,
                               std::span<const Segment> segments);

}  // namespace probed::elf

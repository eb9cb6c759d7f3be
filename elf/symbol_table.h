#pragma once
// Symbol tables as the file has them, one at a time. gABI, "Symbol Table"; LSB, "Symbol
// Versioning".

#include <span>
#include <string_view>
#include <vector>

#include "elf/headers.h"
#include "elf/symbol.h"

namespace probed::elf {

// The raw parts of one table. `versions` names the version of each symbol, by its index; empty when
// the table has none.
struct VersionName {
  std::string_view name;
  bool is_default = true;
};

struct RawSymbolTable {
  std::vector<uint8_t> entries;  // Elf64_Sym
  std::vector<uint8_t> strings;
  SymbolSource source = SymbolSource::kSymtab;
};

// Functions, data and labels with a name; the rest (sections, files, TLS) is left out. A file
// cannot make this take more than a few times its own size.
std::vector<Symbol> ParseSymbols(const RawSymbolTable& table,
                                 std::span<const VersionName> versions);

// The table in the first section of `type` (SHT_SYMTAB, SHT_DYNSYM); no entries when there is none.
RawSymbolTable ReadSymbolSection(const Image& image, const Headers& headers, uint32_t type);

std::vector<Symbol> ReadSymtab(const Image& image, const Headers& headers, SymbolSource source);

// .dynsym with versions: by sections, or by PT_DYNAMIC when the section headers are gone.
std::vector<Symbol> ReadDynsym(const Image& image, const Headers& headers,
                               std::span<const Segment> segments);

}  // namespace probed::elf

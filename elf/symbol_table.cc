#include "elf/symbol_table.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "elf/byte_reader.h"
#include "elf/dynamic.h"
#include "elf/versions.h"

namespace probed::elf {
namespace {

constexpr size_t kMaxNameLength = 64 << 10;

std::optional<SymbolKind> KindOf(const Elf64_Sym& entry) {
  switch (ELF64_ST_TYPE(entry.st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
      return SymbolKind::kFunction;
    case STT_OBJECT:
    case STT_COMMON:
      return SymbolKind::kObject;
    case STT_NOTYPE:
      return SymbolKind::kLabel;
    default:
      return std::nullopt;
  }
}

// Linkers write versions into the names of .symtab: "memcpy@GLIBC_2.2.5", "pow@@GLIBC_2.29".
void SplitVersion(Symbol* symbol) {
  size_t at = symbol->name.find('@');
  if (at == std::string::npos || at == 0) return;
  symbol->default_version = symbol->name.compare(at, 2, "@@") == 0;
  symbol->version = symbol->name.substr(at + (symbol->default_version ? 2 : 1));
  symbol->name.resize(at);
}

Symbol MakeSymbol(const Elf64_Sym& entry, SymbolKind kind, std::string_view name) {
  Symbol symbol;
  symbol.name = name;
  symbol.address = {entry.st_value};
  symbol.size = entry.st_size;
  symbol.ifunc = ELF64_ST_TYPE(entry.st_info) == STT_GNU_IFUNC;
  symbol.defined = entry.st_shndx != SHN_UNDEF;
  symbol.global = ELF64_ST_BIND(entry.st_info) != STB_LOCAL;
  symbol.kind = kind;
  return symbol;
}

}  // namespace

std::vector<Symbol> ParseSymbols(const RawSymbolTable& table,
                                 std::span<const VersionName> versions) {
  std::vector<Symbol> symbols;
  // Names may share their tails, so a hostile table can name far more than it stores.
  uint64_t name_budget = (uint64_t{16} << 20) + 4 * table.strings.size();
  ByteReader reader(table.entries);
  for (size_t index = 0; reader.left() >= sizeof(Elf64_Sym); ++index) {
    auto entry = reader.Take<Elf64_Sym>();
    auto kind = KindOf(entry);
    if (!kind) continue;
    std::string_view name = StringAt(table.strings, entry.st_name);
    if (name.empty() || name.size() > kMaxNameLength) continue;
    if (name.size() > name_budget) break;
    name_budget -= name.size();
    Symbol& symbol = symbols.emplace_back(MakeSymbol(entry, *kind, name));
    symbol.source = table.source;
    if (index < versions.size()) {
      symbol.version = versions[index].name;
      symbol.default_version = versions[index].is_default;
    } else if (table.source != SymbolSource::kDynsym) {
      SplitVersion(&symbol);
    }
  }
  return symbols;
}

RawSymbolTable ReadSymbolSection(const Image& image, const Headers& headers, uint32_t type) {
  RawSymbolTable table;
  const Section* section = headers.FindSection(type);
  if (section == nullptr || section->header.sh_entsize != sizeof(Elf64_Sym)) return table;
  if (section->header.sh_link >= headers.sections.size()) return table;
  table.entries = ReadSection(image, *section);
  table.strings = ReadSection(image, headers.sections[section->header.sh_link]);
  return table;
}

std::vector<Symbol> ReadSymtab(const Image& image, const Headers& headers, SymbolSource source) {
  RawSymbolTable table = ReadSymbolSection(image, headers, SHT_SYMTAB);
  table.source = source;
  return ParseSymbols(table, {});
}

std::vector<Symbol> ReadDynsym(const Image& image, const Headers& headers,
                               std::span<const Segment> segments) {
  RawVersions versions;
  RawSymbolTable table = ReadSymbolSection(image, headers, SHT_DYNSYM);
  if (table.entries.empty()) {
    DynamicTables tables = ReadDynamicTables(image, headers, segments);
    table = std::move(tables.symbols);
    versions = std::move(tables.versions);
  } else {
    versions = ReadVersionSections(image, headers);
  }
  table.source = SymbolSource::kDynsym;
  std::vector<VersionName> names = NameVersions(versions, table.strings);
  return ParseSymbols(table, names);
}

}  // namespace probed::elf

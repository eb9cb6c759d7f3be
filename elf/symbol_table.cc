#include "elf/symbol_table.h"

#include <optional>

#include "elf/byte_reader.h"
#include "elf/dynamic.h"
#include "elf/versions.h"

namespace probed::elf {
namespace {

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

// Functions, data and labels with a name; the rest (sections, files, TLS) is left out.
std::vector<Symbol> ParseSymbols(const SymbolTable& table, SymbolSource source) {
  std::vector<Symbol> symbols;
  auto versions = ReadVersionNames(table);
  std::span<const uint8_t> strings = BytesOf(table.strings);
  // Names may share their tails, so a hostile table can name far more than it stores.
  uint64_t name_budget = (uint64_t{16} << 20) + 4 * strings.size();
  Elf64_Sym entry;
  for (int i = 0; ::gelf_getsym(table.symbols, i, &entry) != nullptr; ++i) {
    auto kind = KindOf(entry);
    if (!kind) continue;
    std::string_view name = StringAt(strings, entry.st_name);
    GElf_Versym index = 0;
    bool is_versioned = ::gelf_getversym(table.versions, i, &index) != nullptr;
    std::string_view version = versions[index & ~kHiddenVersion];
    if (name.size() + version.size() > name_budget) break;
    name_budget -= name.size() + version.size();
    if (name.empty() || name.size() == kMaxString) continue;
    Symbol& symbol = symbols.emplace_back(MakeSymbol(entry, *kind, name));
    symbol.source = source;
    symbol.version = version;
    symbol.default_version = (index & kHiddenVersion) == 0;
    if (!is_versioned && source != SymbolSource::kDynsym) SplitVersion(&symbol);
  }
  return symbols;
}

// The table in the first section of `type` (SHT_SYMTAB, SHT_DYNSYM), without versions.
SymbolTable FindTable(const Handle& elf, const Headers& headers, uint32_t type) {
  const Section* section = headers.FindSection(type);
  if (section == nullptr || section->header.sh_entsize != sizeof(Elf64_Sym)) return {};
  if (section->header.sh_link >= headers.sections.size()) return {};
  SymbolTable table;
  table.symbols = DataOf(elf, section, ELF_T_SYM);
  table.strings = DataOf(elf, &headers.sections[section->header.sh_link], ELF_T_BYTE);
  return table;
}

SymbolTable FindDynamicTable(const Handle& elf, const Headers& headers,
                             std::span<const Segment> segments) {
  SymbolTable table = FindTable(elf, headers, SHT_DYNSYM);
  if (BytesOf(table.symbols).empty()) return ReadDynamicTable(elf, headers, segments);
  table.versions = DataOf(elf, headers.FindSection(uint32_t{SHT_GNU_versym}), ELF_T_HALF);
  table.definitions = DataOf(elf, headers.FindSection(uint32_t{SHT_GNU_verdef}), ELF_T_VDEF);
  table.needs = DataOf(elf, headers.FindSection(uint32_t{SHT_GNU_verneed}), ELF_T_VNEED);
  return table;
}

}  // namespace

std::vector<Symbol> ReadSymtab(const Image& image, const Headers& headers, SymbolSource source) {
  Handle elf(image);
  return ParseSymbols(FindTable(elf, headers, SHT_SYMTAB), source);
}

std::vector<Symbol> ReadDynsym(const Image& image, const Headers& headers,
                               std::span<const Segment> segments) {
  Handle elf(image);
  return ParseSymbols(FindDynamicTable(elf, headers, segments), SymbolSource::kDynsym);
}

}  // namespace probed::elf

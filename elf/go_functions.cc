#include "elf/go_functions.h"

#include <algorithm>

#include "elf/byte_reader.h"
#include "elf/file.h"

namespace probed::elf {
namespace {

constexpr uint32_t kMagic118 = 0xfffffff0;
constexpr uint32_t kMagic120 = 0xfffffff1;
constexpr size_t kMaxName = 4096;

struct Table {
  uint64_t count = 0;
  uint64_t text_start = 0;
  std::span<const uint8_t> names;
  std::span<const uint8_t> functions;  // pairs of (entry, record), then an end; records follow
};

std::span<const uint8_t> From(std::span<const uint8_t> bytes, uint64_t offset) {
  return offset < bytes.size() ? bytes.subspan(offset) : std::span<const uint8_t>{};
}

std::optional<Table> ParseHeader(std::span<const uint8_t> bytes) {
  ByteReader reader(bytes);
  auto magic = reader.Take<uint32_t>();
  reader.Skip(3);
  auto pointer_size = reader.Take<uint8_t>();
  if ((magic != kMagic118 && magic != kMagic120) || pointer_size != 8) return std::nullopt;
  Table table;
  table.count = reader.Take<uint64_t>();
  reader.Skip(8);  // number of files
  table.text_start = reader.Take<uint64_t>();
  table.names = From(bytes, reader.Take<uint64_t>());
  reader.Skip(3 * 8);  // compilation units, files, line programs
  table.functions = From(bytes, reader.Take<uint64_t>());
  bool fits = table.count < table.functions.size() / 8;
  // Zero: filled in by the dynamic linker.
  return reader.ok() && fits && table.text_start != 0 ? std::optional(table) : std::nullopt;
}

std::string_view NameOf(const Table& table, uint32_t record) {
  ByteReader reader(table.functions, record);
  reader.Skip(4);  // the entry again
  return StringAt(table.names, reader.Take<uint32_t>());
}

}  // namespace

std::vector<Symbol> ReadGoFunctions(const Image& image, const Headers& headers) {
  const Section* section = headers.FindSection(".gopclntab");
  if (section == nullptr) return {};
  std::vector<uint8_t> bytes = ReadSection(image, *section);
  auto table = ParseHeader(bytes);
  if (!table) return {};
  std::vector<Symbol> symbols;
  size_t name_budget = bytes.size();
  ByteReader reader(table->functions);
  auto entry = reader.Take<uint32_t>();
  for (uint64_t i = 0; i < table->count; ++i) {
    std::string_view name = NameOf(*table, reader.Take<uint32_t>());
    auto next = reader.Take<uint32_t>();
    if (!reader.ok() || next < entry || name.size() > name_budget) break;
    name_budget -= name.size();
    if (!name.empty() && name.size() <= kMaxName) {
      Symbol& symbol = symbols.emplace_back();
      symbol.name = name;
      symbol.address = {table->text_start + entry};
      symbol.size = next - entry;
      symbol.source = SymbolSource::kGoTable;
    }
    entry = next;
  }
  return symbols;
}

bool PassesInGoRegisters(const File& file, LinkAddr address) {
  auto bounds = file.is_go() ? file.FunctionAt(address) : std::nullopt;
  if (!bounds) return false;
  const auto names = file.AliasesAt(bounds->start);
  return std::any_of(names.begin(), names.end(), [](const Symbol& symbol) {
    return symbol.name.find('.') != std::string::npos && !symbol.name.ends_with(".abi0");
  });
}

}  // namespace probed::elf

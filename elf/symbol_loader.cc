#include "elf/symbol_loader.h"

#include <algorithm>
#include <iterator>

#include "elf/go_functions.h"
#include "elf/symbol_table.h"

namespace probed::elf {
namespace {

// A function defined outside of code is a lie, or of another file.
bool IsMisplaced(const Symbol& symbol, std::span<const Segment> segments) {
  if (!symbol.defined || symbol.kind != SymbolKind::kFunction) return false;
  return std::none_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    return segment.executable && segment.HoldsInFile(symbol.address);
  });
}

std::vector<Symbol> LoadStatic(const DebugFileRequest& file) {
  bool is_stripped = file.headers.FindSection(uint32_t{SHT_SYMTAB}) == nullptr;
  if (!is_stripped) return ReadSymtab(file.image, file.headers, SymbolSource::kSymtab);
  if (auto debug = FindDebugFile(file)) {
    return ReadSymtab(debug->image, debug->headers, SymbolSource::kDebugFile);
  }
  if (auto inner = ReadDebugData(file.image, file.headers)) {
    return ReadSymtab(inner->image, inner->headers, SymbolSource::kDebugData);
  }
  return ReadGoFunctions(file.image, file.headers);
}

}  // namespace

std::vector<Symbol> LoadSymbols(const DebugFileRequest& file, std::span<const Segment> segments) {
  std::vector<Symbol> symbols = ReadDynsym(file.image, file.headers, segments);
  std::vector<Symbol> more = LoadStatic(file);
  std::move(more.begin(), more.end(), std::back_inserter(symbols));
  std::erase_if(symbols, [&](const Symbol& symbol) { return IsMisplaced(symbol, segments); });
  return symbols;
}

}  // namespace probed::elf

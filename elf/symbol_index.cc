#include "elf/symbol_index.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace probed::elf {
namespace {

uint64_t EndOf(const Symbol& symbol) {
  uint64_t end = symbol.address.value + symbol.size;
  return end < symbol.address.value ? UINT64_MAX : end;
}

// Of entries for the same name and address the versioned and exported one comes first and survives.
bool SortsBefore(const Symbol& a, const Symbol& b) {
  auto key = [](const Symbol& s) {
    return std::tuple(s.address.value, std::string_view(s.name), s.version.empty(),
                      std::string_view(s.version), !s.default_version,
                      s.source != SymbolSource::kDynsym, s.size == 0);
  };
  return key(a) < key(b);
}

bool SameSymbol(const Symbol& kept, const Symbol& next) {
  if (kept.address != next.address || kept.name != next.name) return false;
  return next.version.empty() || kept.version == next.version;
}

void SortAndMerge(std::vector<Symbol>* symbols) {
  std::sort(symbols->begin(), symbols->end(), SortsBefore);
  symbols->erase(std::unique(symbols->begin(), symbols->end(), SameSymbol), symbols->end());
  symbols->shrink_to_fit();
}

std::vector<Symbol> Named(const std::vector<Symbol>& symbols, std::string_view name) {
  std::vector<Symbol> found;
  std::copy_if(symbols.begin(), symbols.end(), std::back_inserter(found),
               [&](const Symbol& symbol) { return symbol.name == name; });
  return found;
}

// Of several names for one function the plainest: open rather than __open64.
bool IsPlainer(const Symbol& a, const Symbol& b) {
  auto key = [](const Symbol& s) {
    size_t underscores = std::min(s.name.find_first_not_of('_'), s.name.size());
    return std::tuple(!s.default_version, !s.global, underscores, s.name.size());
  };
  return key(a) < key(b);
}

bool BeginsAfter(LinkAddr address, const Symbol& symbol) {
  return address < symbol.address;
}

}  // namespace

SymbolIndex::SymbolIndex(std::vector<Symbol> symbols) {
  for (Symbol& symbol : symbols) {
    auto& list = !symbol.defined                        ? imports_
                 : symbol.kind == SymbolKind::kFunction ? functions_
                 : symbol.kind == SymbolKind::kObject   ? objects_
                                                        : labels_;
    list.push_back(std::move(symbol));
  }
  for (auto* list : {&functions_, &objects_, &labels_, &imports_})
    SortAndMerge(list);

  functions_by_name_.resize(functions_.size());
  std::iota(functions_by_name_.begin(), functions_by_name_.end(), 0u);
  std::stable_sort(functions_by_name_.begin(), functions_by_name_.end(),
                   [&](uint32_t a, uint32_t b) { return functions_[a].name < functions_[b].name; });
  uint64_t highest = 0;
  for (const Symbol& symbol : functions_) {
    highest_end_.push_back(highest = std::max(highest, EndOf(symbol)));
  }
}

std::vector<Symbol> SymbolIndex::FunctionsNamed(std::string_view name) const {
  std::vector<Symbol> found;
  auto first = std::lower_bound(
      functions_by_name_.begin(), functions_by_name_.end(), name,
      [&](uint32_t index, std::string_view wanted) { return functions_[index].name < wanted; });
  for (; first != functions_by_name_.end() && functions_[*first].name == name; ++first) {
    found.push_back(functions_[*first]);
  }
  return found;
}

std::vector<Symbol> SymbolIndex::LabelsNamed(std::string_view name) const {
  return Named(labels_, name);
}

std::vector<Symbol> SymbolIndex::ObjectsNamed(std::string_view name) const {
  return Named(objects_, name);
}

bool SymbolIndex::Imports(std::string_view name) const {
  return std::any_of(imports_.begin(), imports_.end(),
                     [&](const Symbol& symbol) { return symbol.name == name; });
}

std::vector<Symbol> SymbolIndex::At(LinkAddr address) const {
  auto range = std::equal_range(
      functions_.begin(), functions_.end(), Symbol{.name = {}, .version = {}, .address = address},
      [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
  return {range.first, range.second};
}

size_t SymbolIndex::CountUpTo(LinkAddr address) const {
  auto next = std::upper_bound(functions_.begin(), functions_.end(), address, BeginsAfter);
  return static_cast<size_t>(next - functions_.begin());
}

std::optional<FunctionBounds> SymbolIndex::Around(LinkAddr address) const {
  for (size_t i = CountUpTo(address); i-- > 0 && highest_end_[i] > address.value;) {
    if (EndOf(functions_[i]) > address.value) return BoundsOf(i);
  }
  return std::nullopt;
}

std::optional<FunctionBounds> SymbolIndex::UnsizedBefore(LinkAddr address) const {
  size_t next = CountUpTo(address);
  if (next == 0 || functions_[next - 1].size != 0) return std::nullopt;
  FunctionBounds bounds = BoundsOf(next - 1);
  bounds.size = next == functions_.size() ? UINT64_MAX : functions_[next].address - bounds.start;
  return bounds;
}

FunctionBounds SymbolIndex::BoundsOf(size_t index) const {
  const Symbol& symbol = functions_[index];
  const Symbol* plainest = &symbol;
  for (size_t i = index; i-- > 0 && functions_[i].address == symbol.address;) {
    bool same_extent = functions_[i].size == symbol.size;
    if (same_extent && IsPlainer(functions_[i], *plainest)) plainest = &functions_[i];
  }
  return {symbol.address, symbol.size, plainest->name};
}

}  // namespace probed::elf

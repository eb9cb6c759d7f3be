#include "engine/kernel/place_names.h"

#include <utility>

#include <fmt/format.h>

namespace probed::kernel {
namespace {

constexpr size_t kMostKnown = 65536;  // callers of functions: there are only so many

}  // namespace

// sprint_symbol and kallsyms_lookup (kernel/kallsyms.c).
PlaceNames::Name PlaceNames::Make(uint64_t address) const {
  const Symbols::Symbol* const symbol = symbols_->Find(address);
  if (symbol == nullptr) return {fmt::format("{:#x}", address), fmt::format("{:#x}", address)};
  const std::string module = symbol->module.empty() ? "" : fmt::format(" [{}]", symbol->module);
  return {fmt::format("{}+{:#x}/{:#x}{}", symbol->name, address - symbol->address,
                      symbols_->SizeOf(*symbol), module),
          symbol->name};
}

void PlaceNames::Refresh() {
  std::string modules = list_modules_();
  if (symbols_ && modules == modules_) return;
  modules_ = std::move(modules);
  symbols_ = load_();
  known_.clear();
}

const PlaceNames::Name& PlaceNames::Find(uint64_t address) {
  if (const auto known = known_.find(address); known != known_.end()) return known->second;
  if (!symbols_ || !symbols_->IsInCore(address)) Refresh();
  if (known_.size() >= kMostKnown) known_.clear();
  return known_.emplace(address, Make(address)).first->second;
}

const std::string& PlaceNames::WithOffset(uint64_t address) {
  return Find(address).with_offset;
}

const std::string& PlaceNames::Bare(uint64_t address) {
  return Find(address).bare;
}

}  // namespace probed::kernel

#pragma once
// All symbols of a file, merged from its tables, and the ways to find one. Immutable.

#include <optional>
#include <string_view>
#include <vector>

#include "elf/symbol.h"

namespace probed::elf {

class SymbolIndex {
 public:
  // Tables in any order; entries for the same name and address become one, the versioned one.
  explicit SymbolIndex(std::vector<Symbol> symbols);

  const std::vector<Symbol>& functions() const { return functions_; }  // by address, then name
  const std::vector<Symbol>& objects() const { return objects_; }
  const std::vector<Symbol>& imports() const { return imports_; }

  std::vector<Symbol> FunctionsNamed(std::string_view name) const;
  // Untyped names, as hand-written assembly has.
  std::vector<Symbol> LabelsNamed(std::string_view name) const;
  std::vector<Symbol> ObjectsNamed(std::string_view name) const;
  bool Imports(std::string_view name) const;
  std::vector<Symbol> At(LinkAddr address) const;

  // The innermost function whose size reaches over `address`.
  std::optional<FunctionBounds> Around(LinkAddr address) const;
  // The last function at or before `address`, if it has no size; `size` is the distance to the next
  // function, UINT64_MAX when there is none.
  std::optional<FunctionBounds> UnsizedBefore(LinkAddr address) const;

 private:
  FunctionBounds BoundsOf(size_t index) const;
  size_t CountUpTo(LinkAddr address) const;

  std::vector<Symbol> functions_, objects_, labels_, imports_;
  std::vector<uint32_t> functions_by_name_;
  std::vector<uint64_t> highest_end_;  // of functions_[0..i]: how far back a search must look
};

}  // namespace probed::elf

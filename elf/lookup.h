#pragma once
// From a name that a person typed to one symbol, or an error that helps.

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "elf/segment.h"
#include "elf/symbol.h"
#include "elf/symbol_index.h"

namespace probed::elf {

// What a lookup runs on; borrowed for the call.
struct LookupContext {
  const SymbolIndex& index;
  std::span<const Segment> segments;
  const std::string& path;  // for messages
};

// See File::FindFunction and File::FindObject.
Result<Symbol> LookUpFunction(const LookupContext& context, const std::string& name);
Result<Symbol> LookUpObject(const LookupContext& context, const std::string& name);

}  // namespace probed::elf

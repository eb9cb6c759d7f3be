#include "elf/function_bounds.h"

#include <algorithm>

namespace probed::elf {
namespace {

std::string NameAt(const SymbolIndex& symbols, LinkAddr address) {
  auto unsized = symbols.UnsizedBefore(address);
  return unsized && unsized->start == address ? unsized->symbol : "";
}

// The end of the executable section, or else segment, that holds `address`; 0 when none does.
uint64_t EndOfCode(const BoundsSources& sources, LinkAddr address) {
  for (const Section& section : sources.headers.sections) {
    const Elf64_Shdr& header = section.header;
    bool is_code = (header.sh_flags & SHF_EXECINSTR) != 0 && header.sh_type != SHT_NOBITS;
    if (!is_code || address.value < header.sh_addr) continue;
    if (address.value - header.sh_addr < header.sh_size) return header.sh_addr + header.sh_size;
  }
  for (const Segment& segment : sources.segments) {
    if (segment.executable && segment.HoldsInFile(address)) {
      return segment.address.value + segment.file_size;
    }
  }
  return 0;
}

std::optional<FunctionBounds> BoundsOfUnsized(const BoundsSources& sources, LinkAddr address) {
  auto bounds = sources.symbols.UnsizedBefore(address);
  if (!bounds) return std::nullopt;
  uint64_t end = EndOfCode(sources, bounds->start);
  if (bounds->size != UINT64_MAX) end = std::min(end, bounds->start.value + bounds->size);
  if (auto next = sources.frames.After(bounds->start)) end = std::min(end, next->start.value);
  if (address.value >= end) return std::nullopt;
  bounds->size = end - bounds->start.value;
  return bounds;
}

}  // namespace

std::optional<FunctionBounds> FindFunctionBounds(const BoundsSources& sources, LinkAddr address) {
  if (auto sized = sources.symbols.Around(address)) return sized;
  if (auto frame = sources.frames.Around(address)) {
    return FunctionBounds{frame->start, frame->size, NameAt(sources.symbols, frame->start)};
  }
  return BoundsOfUnsized(sources, address);
}

}  // namespace probed::elf

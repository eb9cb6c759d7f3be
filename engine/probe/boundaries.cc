#include "engine/probe/boundaries.h"

#include <algorithm>
#include <span>

#include "engine/arch/x86_64/instruction.h"
#include "engine/probe/function_extent.h"

namespace probed::probe {

// As far as behind `address`: most probes are at the beginning of their functions.
void Boundaries::Extend(const elf::File& file, const elf::FunctionBounds& function,
                        LinkAddr address, Decoded& decoded) {
  auto offset = file.ToOffset(LinkAddr{decoded.end});
  if (!offset || function.size > kLongestFunction) return;
  auto code = file.Bytes(*offset, function.start.value + function.size - decoded.end);
  for (size_t at = 0; at < code.size() && decoded.end <= address.value;) {
    auto instruction = arch::Decode(std::span(code).subspan(at), decoded.end);
    if (!instruction.ok()) break;
    decoded.starts.push_back(decoded.end);
    at += instruction->length;
    decoded.end += instruction->length;
  }
}

Boundary Boundaries::At(const elf::File& file, LinkAddr address) {
  auto function = file.FunctionAt(address);
  if (!function || function->size == 0) return Boundary::kUnknown;
  auto key = std::pair(&file, function->start.value);
  auto [found, is_new] = functions_.try_emplace(key);
  Decoded& decoded = found->second;
  if (is_new) decoded.end = function->start.value;
  if (decoded.end <= address.value) Extend(file, *function, address, decoded);
  if (std::binary_search(decoded.starts.begin(), decoded.starts.end(), address.value)) {
    return Boundary::kYes;
  }
  return address.value < decoded.end ? Boundary::kInside : Boundary::kUnknown;
}

}  // namespace probed::probe

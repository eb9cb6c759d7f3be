#include "engine/probe/boundaries.h"

#include <algorithm>
#include <span>

#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {
namespace {

// Longer functions are generated code; decoding them for one probe is not worth the wait.
constexpr uint64_t kLongestFunction = 1 << 20;

}  // namespace

Boundaries::Decoded Boundaries::Decode(const elf::File& file, const elf::FunctionBounds& function) {
  Decoded decoded{.starts = {}, .end = function.start.value};
  auto offset = file.ToOffset(function.start);
  if (!offset || function.size > kLongestFunction) return decoded;
  auto code = file.Bytes(*offset, function.size);
  for (size_t at = 0; at < code.size();) {
    uint64_t address = function.start.value + at;
    auto instruction = arch::Decode(std::span(code).subspan(at), address);
    if (!instruction.ok()) break;
    decoded.starts.push_back(address);
    at += instruction->length;
    decoded.end = function.start.value + at;
  }
  return decoded;
}

Boundary Boundaries::At(const elf::File& file, LinkAddr address) {
  auto function = file.FunctionAt(address);
  if (!function || function->size == 0) return Boundary::kUnknown;
  auto key = std::pair(&file, function->start.value);
  auto found = functions_.find(key);
  if (found == functions_.end()) found = functions_.emplace(key, Decode(file, *function)).first;
  const Decoded& decoded = found->second;
  if (std::binary_search(decoded.starts.begin(), decoded.starts.end(), address.value)) {
    return Boundary::kYes;
  }
  return address.value < decoded.end ? Boundary::kInside : Boundary::kUnknown;
}

}  // namespace probed::probe

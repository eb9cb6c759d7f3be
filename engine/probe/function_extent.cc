#include "engine/probe/function_extent.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {
namespace {

constexpr char kHint[] = "put an entry probe on its ret instructions";

Error Refusal(std::string reason, std::string message) {
  return Error{.code = ErrorCode::kInvalidArgument,
               .reason = std::move(reason),
               .message = std::move(message),
               .hint = kHint,
               .metadata = {}};
}

bool SmallerSize(const elf::SizeClaim& a, const elf::SizeClaim& b) {
  return a.size < b.size;
}

bool BeginsIn(const elf::File& file, LinkAddr from, LinkAddr end) {
  const auto& symbols = file.functions();
  auto symbol = std::ranges::lower_bound(symbols, from, {}, &elf::Symbol::address);
  const auto& frames = file.frames();
  auto frame = std::ranges::lower_bound(frames, from, {}, &elf::Frame::start);
  return (symbol != symbols.end() && symbol->address < end) ||
         (frame != frames.end() && frame->start < end);
}

bool Decodes(const elf::File& file, LinkAddr start, uint64_t size) {
  auto offset = file.ToOffset(start);
  const auto code = offset ? file.Bytes(*offset, size) : std::vector<uint8_t>();
  size_t at = 0;
  while (at < code.size()) {
    auto instruction = arch::Decode(std::span(code).subspan(at), start.value + at);
    if (!instruction.ok()) return false;
    at += instruction->length;
  }
  return code.size() == size && at == size;
}

Result<uint64_t> Settle(const elf::File& file, const elf::FunctionBounds& function,
                        const std::vector<elf::SizeClaim>& claims) {
  const auto [least, most] = std::ranges::minmax_element(claims, SmallerSize);
  if (least->size == most->size || most->size > kLongestFunction) return most->size;
  const LinkAddr start = function.start;
  const bool runs_on = BeginsIn(file, start + least->size, start + most->size);
  if (!runs_on && Decodes(file, start, most->size)) return most->size;
  return Refusal(
      "FUNCTION_END_DISPUTED",
      fmt::format("where {} ends is not certain: it has {:#x} bytes by {}, {:#x} by {}, of which "
                  "the last {}",
                  function.symbol.empty() ? fmt::format("{:#x}", start.value) : function.symbol,
                  least->size, least->table, most->size, most->table,
                  runs_on ? "are another function's" : "are no instructions"));
}

}  // namespace

Result<elf::FunctionBounds> ExtentOf(const elf::File& file, LinkAddr start) {
  auto function = file.FunctionAt(start);
  if (!function) {
    return Refusal("FUNCTION_END_UNKNOWN",
                   fmt::format("no function is known at {:#x}", start.value));
  }
  if (function->start == start) {
    const auto claims = file.SizesAt(start);
    if (!claims.empty()) {
      PROBED_TRY(function->size, Settle(file, *function, claims));
    }
  }
  if (function->size == 0 || function->size > kLongestFunction) {
    return Refusal("FUNCTION_END_UNKNOWN",
                   fmt::format("where the function at {:#x} ends is not known", start.value));
  }
  return *std::move(function);
}

}  // namespace probed::probe

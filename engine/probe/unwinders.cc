#include "engine/probe/unwinders.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {
namespace {

constexpr std::array<std::string_view, 5> kWalkers = {
    "_Unwind_RaiseException", "_Unwind_Resume",    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",   "_Unwind_Backtrace",
};
constexpr std::string_view kHandlerBegins = "__cxa_begin_catch";
// The one walker that comes back to its caller, who is still on the stack with all of his.
constexpr std::string_view kOnlyLooks = "_Unwind_Backtrace";
// They take a kilobyte or two.
constexpr uint64_t kLongestWalker = 1 << 16;

bool IsWalker(std::string_view name) {
  return std::find(kWalkers.begin(), kWalkers.end(), name) != kWalkers.end();
}

void AppendReturns(const elf::File& file, const elf::Symbol& function,
                   std::vector<UnwindPoint>& points) {
  auto offset = file.ToOffset(function.address);
  if (!offset || function.size > kLongestWalker) return;
  auto code = file.Bytes(*offset, function.size);
  for (size_t at = 0; at < code.size();) {
    auto instruction = arch::Decode(std::span(code).subspan(at), function.address.value + at);
    if (!instruction.ok()) return;
    if (instruction->is_return) points.push_back({*offset + at, Hook::kCatch});
    at += instruction->length;
  }
}

}  // namespace

std::vector<UnwindPoint> FindUnwindPoints(const elf::File& file) {
  std::vector<UnwindPoint> points;
  for (const auto& function : file.functions()) {
    bool walker = IsWalker(function.name);
    if (!walker && function.name != kHandlerBegins) continue;
    auto offset = file.ToOffset(function.address);
    if (offset) points.push_back({*offset, walker ? Hook::kUnwind : Hook::kCatch});
    if (function.name == kOnlyLooks) AppendReturns(file, function, points);
  }
  return points;
}

}  // namespace probed::probe

#include "engine/probe/unwinders.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {
namespace {

constexpr std::array<std::string_view, 5> kWalkers = {
    "_Unwind_RaiseException", "_Unwind_Resume",    "_Unwind_Resume_or_Rethrow",
    "_Unwind_ForcedUnwind",   "_Unwind_Backtrace",
};
constexpr std::string_view kHandlerBegins = "__cxa_begin_catch";
// glibc's names, and that of the library that musl's programs take it from.
constexpr std::array<std::string_view, 3> kKeepers = {"swapcontext", "__swapcontext",
                                                      "libucontext_swapcontext"};
constexpr std::string_view kBegins = "uw_init_context_1";
// It is the first that this one calls.
constexpr std::string_view kBeginsWith = "_Unwind_RaiseException";
constexpr uint64_t kLongestBeginning = 256;
// They take a kilobyte or two.
constexpr uint64_t kLongestWalker = 1 << 16;

bool IsOneOf(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<Hook> HookOf(std::string_view name) {
  if (IsOneOf(kWalkers, name)) return Hook::kUnwind;
  if (name == kHandlerBegins) return Hook::kCatch;
  if (IsOneOf(kKeepers, name)) return Hook::kKeepsReturn;
  return std::nullopt;
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

// Where the first direct call in `code`, which is at `address`, leads.
std::optional<LinkAddr> FirstCall(std::span<const uint8_t> code, LinkAddr address) {
  constexpr uint8_t kCallRelative = 0xe8;
  for (size_t at = 0; at < code.size();) {
    auto instruction = arch::Decode(code.subspan(at), address.value + at);
    if (!instruction.ok()) return std::nullopt;
    at += instruction->length;
    if (instruction->bytes[0] != kCallRelative) continue;
    int32_t distance = 0;
    std::memcpy(&distance, &instruction->bytes[1], sizeof distance);
    return address + at + static_cast<uint64_t>(int64_t{distance});
  }
  return std::nullopt;
}

}  // namespace

std::vector<UnwindPoint> FindUnwindPoints(const elf::File& file) {
  std::vector<UnwindPoint> points;
  for (const auto& function : file.functions()) {
    auto hook = HookOf(function.name);
    if (!hook) continue;
    auto offset = file.ToOffset(function.address);
    if (offset) points.push_back({*offset, *hook});
    // A walker comes back to its caller, who is still on the stack with all of his, when it only
    // looks or when nobody handles the exception.
    if (hook == Hook::kUnwind) AppendReturns(file, function, points);
  }
  return points;
}

bool BeginsWalk(const elf::File& file, LinkAddr function) {
  auto aliases = file.AliasesAt(function);
  if (!aliases.empty()) {
    return std::ranges::any_of(aliases, [](const auto& alias) { return alias.name == kBegins; });
  }
  auto walker = file.FindFunction(std::string(kBeginsWith));
  auto offset = walker.ok() ? file.ToOffset(walker->address) : std::nullopt;
  return offset && FirstCall(file.Bytes(*offset, kLongestBeginning), walker->address) == function;
}

}  // namespace probed::probe

#include "engine/arch/x86_64/flow/site_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/region.h"

namespace probed::arch {

std::string_view TacticName(Tactic tactic) {
  switch (tactic) {
    case Tactic::kNone:
      return "";
    case Tactic::kJump:
      return "jump";
    case Tactic::kShortJump:
      return "short jump";
    case Tactic::kPunned:
      return "punned jump";
  }
  return "";
}

std::string_view RuleName(Rule rule) {
  switch (rule) {
    case Rule::kNone:
      return "";
    case Rule::kNoFunction:
      return "no function";
    case Rule::kNotAStart:
      return "not an instruction";
    case Rule::kUndecodable:
      return "undecodable";
    case Rule::kEntered:
      return "entered in the middle";
    case Rule::kDoubt:
      return "control flow in doubt";
    case Rule::kNotRelocatable:
      return "not relocatable";
    case Rule::kFunctionTooShort:
      return "function too short";
  }
  return "";
}

namespace flow {
namespace {

constexpr uint64_t kJumpLength = 5;       // e9 rel32
constexpr uint64_t kShortJumpLength = 2;  // eb rel8
// Where a copy would stand does not matter for whether there can be one.
constexpr uint64_t kSomeDistance = 1 << 24;

const char* DoubtWords(uint8_t doubts) {
  if ((doubts & kUndecodable) != 0) return "some bytes of the function are no instruction";
  if ((doubts & kUnknownEntry) != 0) return "the function has code that nothing is known to enter";
  return "the function may compute where it jumps";
}

bool EndsControl(const Instruction& instruction) {
  return instruction.is_return || instruction.operation.kind == OperationKind::kJump;
}

bool IsUserSpace(uint64_t low, uint64_t high) {
  constexpr uint64_t kLowest = 64 << 10;  // vm.mmap_min_addr
  constexpr uint64_t kEnd = uint64_t{1} << 47;
  return low >= kLowest && high > low && high <= kEnd;
}

uint64_t LengthOf(const std::vector<Instruction>& region) {
  uint64_t length = 0;
  for (const Instruction& instruction : region)
    length += instruction.length;
  return length;
}

}  // namespace

PatchPlan SitePlanner::Plan() {
  PatchPlan plan;
  auto refuse = [&](Rule rule, const char* why) {
    plan.rule = rule;
    plan.why = why;
    return plan;
  };
  function_ = analysis_.FunctionAt(address_);
  if (function_ == nullptr) return refuse(Rule::kNoFunction, "no function is known there");
  if (!analysis_.IsStart(address_)) {
    return refuse(Rule::kNotAStart, "no instruction starts there when the function is read");
  }
  std::optional<Refusal> refusal = TryJump(plan);
  if (!refusal.has_value()) return plan;
  if (TryShortJump(plan).has_value() && TryPunned(plan).has_value()) plan = {};
  plan.rule = refusal->rule;
  plan.why = std::move(refusal->why);
  return plan;
}

std::optional<SitePlanner::Refusal> SitePlanner::TryJump(PatchPlan& plan) const {
  std::vector<Instruction> region;
  if (auto refusal = TakeRegion(kJumpLength, region)) return refusal;
  if (auto refusal = CheckRegion(kJumpLength, region)) return refusal;
  plan.tactic = Tactic::kJump;
  plan.region = std::move(region);
  plan.jump_length = kJumpLength;
  return std::nullopt;
}

std::optional<SitePlanner::Refusal> SitePlanner::TryShortJump(PatchPlan& plan) const {
  std::vector<Instruction> region;
  if (auto refusal = TakeRegion(kShortJumpLength, region)) return refusal;
  if (auto refusal = CheckRegion(kShortJumpLength, region)) return refusal;
  std::optional<uint64_t> island = FindIsland();
  if (!island.has_value()) return Refusal{Rule::kFunctionTooShort, "no padding is near"};
  plan.tactic = Tactic::kShortJump;
  plan.region = std::move(region);
  plan.jump_length = kShortJumpLength;
  plan.island = *island;
  return std::nullopt;
}

// e9 and the bytes that the instruction has are free; the rest of the displacement are the bytes of
// what follows, which stays as it is.
std::optional<SitePlanner::Refusal> SitePlanner::TryPunned(PatchPlan& plan) const {
  std::vector<Instruction> region;
  if (auto refusal = TakeInstruction(address_, region)) return refusal;
  if (auto refusal = CheckRegion(region[0].length, region)) return refusal;
  std::span<const uint8_t> bytes = analysis_.code.From(address_);
  if (bytes.size() < kJumpLength) return Refusal{Rule::kFunctionTooShort, "the code ends there"};
  uint64_t free = std::min<uint64_t>(region[0].length, kJumpLength) - 1;
  if (free == 0) return Refusal{Rule::kFunctionTooShort, "no byte of the displacement is free"};
  int32_t displacement;
  std::memcpy(&displacement, &bytes[1], sizeof displacement);
  uint64_t step = uint64_t{1} << 8 * free;
  uint64_t lowest = static_cast<uint64_t>(int64_t{displacement}) & ~(step - 1);
  uint64_t low = address_ + kJumpLength + lowest;
  // A module at a fixed address: where the window lies in the process is known.
  if (analysis_.constants_are_addresses && !IsUserSpace(low, low + step)) {
    return Refusal{Rule::kFunctionTooShort, "the bytes that follow lead out of user space"};
  }
  plan.tactic = Tactic::kPunned;
  plan.region = std::move(region);
  plan.jump_length = kJumpLength;
  plan.low = low;
  plan.high = low + step;
  plan.fixed_bytes = static_cast<uint8_t>(4 - free);
  return std::nullopt;
}

std::optional<SitePlanner::Refusal> SitePlanner::TakeRegion(
    uint64_t bytes, std::vector<Instruction>& region) const {
  uint64_t end = address_ + bytes;
  uint64_t at = address_;
  while (at < end) {
    if (at >= function_->range.end || (!region.empty() && EndsControl(region.back()))) {
      if (analysis_.SkipPadding(at) >= end) return std::nullopt;
      return Refusal{Rule::kFunctionTooShort,
                     fmt::format("{} bytes follow that are not padding", end - at)};
    }
    if (auto refusal = TakeInstruction(at, region)) return refusal;
    at += region.back().length;
  }
  return std::nullopt;
}

std::optional<SitePlanner::Refusal> SitePlanner::TakeInstruction(
    uint64_t address, std::vector<Instruction>& region) const {
  std::span<const uint8_t> bytes = analysis_.code.From(address);
  Result<Instruction> instruction = Decode(bytes, address);
  if (!instruction.ok()) return Refusal{Rule::kUndecodable, instruction.error().message};
  bytes = bytes.first(instruction->length);
  if (CapstoneLength(bytes, address) != instruction->length) {
    return Refusal{Rule::kUndecodable,
                   fmt::format("{}: only one of two decoders knows it", instruction->text)};
  }
  region.push_back(std::move(instruction).value());
  return std::nullopt;
}

// `bytes`: how many are overwritten.
std::optional<SitePlanner::Refusal> SitePlanner::CheckRegion(
    uint64_t bytes, const std::vector<Instruction>& region) const {
  uint64_t end = address_ + bytes;
  uint64_t entry = analysis_.FindEntry(address_, end);
  if (entry != end) {
    return Refusal{Rule::kEntered, fmt::format("control may arrive at +{}, in the middle of the "
                                               "displaced instructions",
                                               entry - address_)};
  }
  if (auto copy = BuildRegionCopy(region, address_, address_ + kSomeDistance);
      !copy.ok() && copy.error().reason != "DISPLACEMENT_OUT_OF_RANGE") {
    return Refusal{Rule::kNotRelocatable, copy.error().message};
  }
  if (function_->doubts != 0 && region.front().length < bytes) {
    return Refusal{Rule::kDoubt, DoubtWords(function_->doubts)};
  }
  if (address_ + LengthOf(region) < address_ + bytes && !EndsControl(region.back())) {
    return Refusal{Rule::kFunctionTooShort, "the last instruction may run into the padding"};
  }
  return std::nullopt;
}

// Padding that a two-byte jump reaches. From the end of a run: the function in front of it may need
// the beginning for a jump of its own.
std::optional<uint64_t> SitePlanner::FindIsland() const {
  constexpr uint64_t kForward = kShortJumpLength + INT8_MAX;
  constexpr uint64_t kBack = -INT8_MIN - kShortJumpLength;
  uint64_t lowest = address_ < kBack ? 0 : address_ - kBack;
  auto run =
      std::upper_bound(analysis_.padding.begin(), analysis_.padding.end(), lowest,
                       [](uint64_t value, const Padding& padding) { return value < padding.end; });
  for (; run != analysis_.padding.end() && run->start <= address_ + kForward; ++run) {
    if (run->end - run->start < kJumpLength) continue;
    uint64_t place = std::min(run->end - kJumpLength, address_ + kForward);
    if (place >= std::max(run->start, lowest)) return place;
  }
  return std::nullopt;
}

}  // namespace flow
}  // namespace probed::arch

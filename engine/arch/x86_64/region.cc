#include "engine/arch/x86_64/region.h"

#include <cstring>
#include <string>

#include "engine/arch/x86_64/copy_writer.h"

namespace probed::arch {
namespace {

Error NotRelocatable(const Instruction& instruction, const std::string& why) {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "REGION_NOT_RELOCATABLE",
          .message = instruction.text + ": " + why,
          .hint = "",
          .metadata = {{"instruction", instruction.text}}};
}

struct Run {
  std::span<const Instruction> instructions;
  uint64_t start;
  uint64_t end;

  // The start is not the middle: who goes there passes the site as anyone else does.
  bool HasInMiddle(uint64_t address) const { return address > start && address < end; }
};

Run MakeRun(std::span<const Instruction> instructions, uint64_t start) {
  uint64_t end = start;
  for (const Instruction& instruction : instructions)
    end += instruction.length;
  return {instructions, start, end};
}

// Branch target, operand or abort target that is named by its distance from the end `after`.
std::optional<uint64_t> NamedAddress(const Instruction& instruction, uint64_t after) {
  if (instruction.rip_relative) {
    int32_t distance;
    std::memcpy(&distance, &instruction.bytes[instruction.displacement_at], sizeof distance);
    return after + static_cast<uint64_t>(int64_t{distance});
  }
  bool relative = (instruction.is_branch || instruction.is_call) &&
                  instruction.operation.source.kind == Operand::Kind::kImmediate;
  if (!relative) return std::nullopt;
  return after + static_cast<uint64_t>(instruction.operation.source.immediate);
}

Status CheckInside(const Instruction& instruction, const Run& run, bool is_last) {
  if (instruction.is_syscall && run.instructions.size() > 1) {
    return NotRelocatable(instruction, "the kernel may restart it at an address that is displaced");
  }
  if (is_last) return {};
  if (instruction.is_call) {
    return NotRelocatable(instruction, "its return address would be displaced");
  }
  if (LeavesByItself(instruction)) {
    return NotRelocatable(instruction, "nothing runs into the instructions behind it");
  }
  return {};
}

Status CheckInstruction(const Instruction& instruction, const Run& run, uint64_t after) {
  if (instruction.execution == Execution::kRefused) {
    return NotRelocatable(instruction, instruction.refusal);
  }
  if (NeedsTracer(instruction)) {
    return NotRelocatable(instruction, "it cannot leave another place without a tracer");
  }
  std::optional<uint64_t> named = NamedAddress(instruction, after);
  if (named.has_value() && run.HasInMiddle(*named)) {
    return NotRelocatable(instruction, "it refers to an address that is displaced");
  }
  return CheckInside(instruction, run, after == run.end);
}

}  // namespace

Result<RegionCopy> BuildRegionCopy(std::span<const Instruction> region, uint64_t original,
                                   uint64_t copy_address) {
  Run run = MakeRun(region, original);
  CopyWriter writer(copy_address);
  uint64_t address = original;
  for (const Instruction& instruction : region) {
    uint64_t after = address + instruction.length;
    PROBED_RETURN_IF_ERROR(CheckInstruction(instruction, run, after));
    Next next = after == run.end ? Next::kProgram : Next::kCopy;
    PROBED_RETURN_IF_ERROR(writer.Append(instruction, address, next));
    address = after;
  }
  return RegionCopy{.code = writer.TakeCode(), .states = writer.TakeStates()};
}

std::optional<uint64_t> EnterRegionCopy(const RegionCopy& copy, uint64_t copy_address,
                                        uint64_t original_ip) {
  for (const RegionCopy::State& state : copy.states) {
    if (state.original_ip == original_ip && state.pushed == 0) return copy_address + state.offset;
  }
  return std::nullopt;
}

}  // namespace probed::arch

#include "engine/arch/x86_64/relocate.h"

#include "engine/arch/x86_64/copy_writer.h"

namespace probed::arch {
namespace {

Error Refused(const Instruction& instruction) {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "INSTRUCTION_REFUSED",
          .message = instruction.text + ": " + instruction.refusal,
          .hint = "probe the instruction before or after it",
          .metadata = {}};
}

}  // namespace

Result<OutOfLineCopy> BuildCopy(const Instruction& instruction, uint64_t original,
                                uint64_t copy_address) {
  if (instruction.execution == Execution::kRefused) return Refused(instruction);
  CopyWriter writer(copy_address);
  bool boosted = !NeedsTracer(instruction);
  PROBED_RETURN_IF_ERROR(boosted ? writer.Append(instruction, original, Next::kProgram)
                                 : writer.AppendForTracer(instruction, original));
  return OutOfLineCopy{.code = writer.TakeCode(),
                       .instruction_length = writer.first_length(),
                       .boosted = boosted,
                       .ends_in_trap = instruction.execution == Execution::kCopyAndTrap,
                       .states = writer.TakeStates()};
}

}  // namespace probed::arch

#include <cstring>

#include "engine/arch/x86_64/relocate.h"

namespace probed::arch {
namespace {

constexpr uint64_t kTrapFlag = 1 << 8;

const CopyState* FindState(const OutOfLineCopy& copy, uint64_t copy_address, uint64_t ip) {
  for (const CopyState& state : copy.states) {
    if (copy_address + state.offset == ip) return &state;
  }
  return nullptr;
}

void CorrectSyscallRegisters(const Instruction& instruction, uint64_t original,
                             uint64_t copy_address, user_regs_struct& regs) {
  uint64_t after_copy = copy_address + instruction.length;
  if (regs.rip != after_copy) return;
  if (regs.rcx == after_copy) regs.rcx = original + instruction.length;
  // r11 holds the flags of the moment, and with them the trap flag of a single step.
  regs.r11 = (regs.r11 & ~kTrapFlag) | (regs.eflags & kTrapFlag);
}

bool StoreReturnAddress(uint64_t value, const user_regs_struct& regs, MemoryBus& memory) {
  return memory.Store(regs.rsp, std::as_bytes(std::span(&value, 1)));
}

bool ClearPushedTrapFlag(const user_regs_struct& regs, MemoryBus& memory) {
  uint16_t flags = 0;  // the trap flag is in the low word, whatever the operand size
  if (!memory.Load(regs.rsp, std::as_writable_bytes(std::span(&flags, 1)))) return false;
  flags = static_cast<uint16_t>((flags & ~kTrapFlag) | (regs.eflags & kTrapFlag));
  return memory.Store(regs.rsp, std::as_bytes(std::span(&flags, 1)));
}

bool CorrectWhatWasPushed(const Instruction& instruction, uint64_t original,
                          const user_regs_struct& regs, MemoryBus& memory) {
  if (instruction.pushes_flags) return ClearPushedTrapFlag(regs, memory);
  bool pushed_our_address =
      instruction.is_call && instruction.operation.source.kind != Operand::Kind::kImmediate;
  return !pushed_our_address || StoreReturnAddress(original + instruction.length, regs, memory);
}

}  // namespace

bool LeaveCopy(const OutOfLineCopy& copy, const Instruction& instruction, uint64_t original,
               uint64_t copy_address, user_regs_struct& regs) {
  const CopyState* state = FindState(copy, copy_address, regs.rip);
  if (state == nullptr) return false;
  if (instruction.is_syscall) CorrectSyscallRegisters(instruction, original, copy_address, regs);
  regs.rip = state->original_ip;
  return true;
}

StepResult FixUpAfterStep(const OutOfLineCopy& copy, const Instruction& instruction,
                          uint64_t original, uint64_t copy_address, user_regs_struct& regs,
                          MemoryBus& memory) {
  bool finished = regs.rip != copy_address;
  LeaveCopy(copy, instruction, original, copy_address, regs);
  if (!finished) return StepResult::kNotFinished;
  return CorrectWhatWasPushed(instruction, original, regs, memory) ? StepResult::kDone
                                                                   : StepResult::kFailed;
}

}  // namespace probed::arch

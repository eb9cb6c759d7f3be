#include <span>

#include "engine/arch/x86_64/eflags.h"
#include "engine/arch/x86_64/region.h"
#include "engine/arch/x86_64/relocate.h"

namespace probed::arch {
namespace {

const CopyState* FindState(std::span<const CopyState> states, uint64_t copy_address, uint64_t ip) {
  for (const CopyState& state : states) {
    if (copy_address + state.offset == ip) return &state;
  }
  return nullptr;
}

void CorrectSyscallRegisters(const Instruction& instruction, uint64_t original,
                             uint64_t copy_address, user_regs_struct& regs) {
  if (regs.rip == copy_address) return;
  if (regs.rcx == copy_address + instruction.length) regs.rcx = original + instruction.length;
  // r11 holds the flags of the moment, and with them the trap flag of a single step.
  regs.r11 = (regs.r11 & ~kTrapFlag) | (regs.eflags & kTrapFlag);
}

bool ClearPushedTrapFlag(const user_regs_struct& regs, MemoryBus& memory) {
  uint16_t flags = 0;  // the trap flag is in the low word, whatever the operand size
  if (!memory.Load(regs.rsp, std::as_writable_bytes(std::span(&flags, 1)))) return false;
  flags = static_cast<uint16_t>((flags & ~kTrapFlag) | (regs.eflags & kTrapFlag));
  return memory.Store(regs.rsp, std::as_bytes(std::span(&flags, 1)));
}

// A call whose target is not canonical faults, but has written below the stack pointer already.
bool CorrectReturnAddress(const Instruction& instruction, uint64_t original, uint64_t copy_address,
                          uint64_t where, MemoryBus& memory) {
  uint64_t address = 0;
  if (!memory.Load(where, std::as_writable_bytes(std::span(&address, 1)))) return false;
  if (address != copy_address + instruction.length) return true;
  address = original + instruction.length;
  return memory.Store(where, std::as_bytes(std::span(&address, 1)));
}

// `first`: what stands at the start of the copy; a syscall stands nowhere else.
bool Leave(std::span<const CopyState> states, const Instruction& first, uint64_t original,
           uint64_t copy_address, user_regs_struct& regs) {
  const CopyState* state = FindState(states, copy_address, regs.rip);
  if (state == nullptr) return false;
  if (first.is_syscall) CorrectSyscallRegisters(first, original, copy_address, regs);
  regs.rip = state->original_ip;
  regs.rsp += state->pushed;
  return true;
}

bool PushesItsAddress(const Instruction& instruction) {
  // The copy of a direct call pushes the right address by itself.
  return instruction.is_call && instruction.operation.source.kind != Operand::Kind::kImmediate;
}

}  // namespace

std::optional<uint64_t> OriginalIp(const OutOfLineCopy& copy, uint64_t copy_address, uint64_t ip) {
  const CopyState* state = FindState(copy.states, copy_address, ip);
  return state == nullptr ? std::nullopt : std::optional(state->original_ip);
}

bool LeaveCopy(const OutOfLineCopy& copy, const Instruction& instruction, uint64_t original,
               uint64_t copy_address, user_regs_struct& regs) {
  return Leave(copy.states, instruction, original, copy_address, regs);
}

bool LeaveRegionCopy(const RegionCopy& copy, std::span<const Instruction> region, uint64_t original,
                     uint64_t copy_address, user_regs_struct& regs) {
  return Leave(copy.states, region.front(), original, copy_address, regs);
}

StepResult FixUpAfterStep(const OutOfLineCopy& copy, const Instruction& instruction,
                          uint64_t original, uint64_t copy_address, user_regs_struct& regs,
                          MemoryBus& memory) {
  bool finished = regs.rip != copy_address;
  uint64_t return_address_at = finished ? regs.rsp : regs.rsp - sizeof(uint64_t);
  LeaveCopy(copy, instruction, original, copy_address, regs);
  bool corrected = true;
  if (PushesItsAddress(instruction)) {
    corrected =
        CorrectReturnAddress(instruction, original, copy_address, return_address_at, memory);
  } else if (instruction.pushes_flags && finished) {
    corrected = ClearPushedTrapFlag(regs, memory);
  }
  // The kernel takes the trap flag for the program's own when it steps a popf, even one that
  // faults.
  if (instruction.pops_flags && !finished) regs.eflags &= ~kTrapFlag;
  if (!finished) return StepResult::kNotFinished;
  return corrected ? StepResult::kDone : StepResult::kFailed;
}

}  // namespace probed::arch

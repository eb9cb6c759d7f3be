#pragma once
// Out-of-line copies. A copy is position-fixed, read-only and shared by all threads: rip-relative
// displacements are rewritten for the copy's place, so no scratch register is borrowed. Pure.

#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/emulate.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

inline constexpr size_t kMaxCopySize = 32;  // bytes to reserve for any copy

// A place in a copy where a thread may stop, and where the program would be there without a probe.
struct CopyState {
  uint32_t offset = 0;
  uint64_t original_ip = 0;
  uint8_t pushed = 0;       // bytes on the stack that must be taken off again
  uint8_t instruction = 0;  // which of several that were copied (region.h)
};

struct OutOfLineCopy {
  std::vector<uint8_t> code;
  uint8_t instruction_length = 0;  // length of the first instruction in the copy
  // Resume the thread at the copy and let it run: it goes on at the right place by itself.
  bool boosted = false;
  // Let it run to the breakpoint behind the instruction and call LeaveCopy with the ip there.
  // Neither: single-step it once and call FixUpAfterStep.
  bool ends_in_trap = false;
  std::vector<CopyState> states;  // the first is {0, original}
};

// Places `instruction` (from `original`) at `copy_address`. DISPLACEMENT_OUT_OF_RANGE when its
// rip-relative operand cannot be reached from there. Branches, calls and `syscall` get a boosted
// copy too, so that a thread can go on without a tracer. A popf ends in a trap, and an indirect
// call through the stack pointer, if it cannot be emulated, is stepped.
Result<OutOfLineCopy> BuildCopy(const Instruction& instruction, uint64_t original,
                                uint64_t copy_address);

// Where the program would be if `ip`, a place in the copy, were the thread's ip. Also corrects the
// si_addr of SIGILL, SIGFPE and SIGTRAP, which names the instruction. Nothing: not in this copy.
std::optional<uint64_t> OriginalIp(const OutOfLineCopy& copy, uint64_t copy_address, uint64_t ip);

// For a thread stopped anywhere (a signal, an event, a detach) while it is in the copy: makes
// `regs` those of the same moment without a probe, ip included. False: the ip is not in this copy
// and nothing was changed. A thread moved back to `original` has not executed the instruction.
bool LeaveCopy(const OutOfLineCopy& copy, const Instruction& instruction, uint64_t original,
               uint64_t copy_address, user_regs_struct& regs);

enum class StepResult : uint8_t {
  kDone,         // executed: registers and stack are as after the original
  kNotFinished,  // still at its start, as after a fault or one round of a rep: step again, or give
                 // the signal to the program; the registers are those of the original place
  kFailed,       // executed, but what it pushed could not be corrected
};

// For a copy that is not boosted, after one single step (PTRACE_SINGLESTEP) that began at
// `copy_address`, whether it ended in a trap or in another signal: corrects the ip, a pushed return
// address, rcx and r11 of a syscall, and the trap flag that pushf saw. `regs` as PTRACE_GETREGS
// gives them, which hides the trap flag unless it is the program's own.
StepResult FixUpAfterStep(const OutOfLineCopy& copy, const Instruction& instruction,
                          uint64_t original, uint64_t copy_address, user_regs_struct& regs,
                          MemoryBus& memory);

}  // namespace probed::arch

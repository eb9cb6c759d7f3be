#include "engine/probe/displacement.h"

#include <algorithm>
#include <array>

namespace probed::probe {
namespace {

// A thread that has to leave the displaced instructions is stepped to their end: that must not take
// for ever, and what the step changes must not be seen.
DisplacementRule RuleAgainst(const arch::Instruction& instruction) {
  if (instruction.is_syscall) return {"system call", "it would displace a system call"};
  if (instruction.pushes_flags)
    return {"sees the trap flag", "it would displace an instruction that sees the trap flag"};
  if (instruction.repeats)
    return {"repeated string", "it would displace a repeated string instruction"};
  return {};
}

// "cmp 0x10(%r14),%rsp" and a branch: how most functions begin. Go preempts nothing between them
// (cmd/internal/obj/x86, stacksplit).
bool IsGoStackCheck(std::span<const arch::Instruction> region) {
  constexpr std::array<uint8_t, 4> kCompare = {0x49, 0x3b, 0x66, 0x10};
  return region.size() == 2 && std::ranges::equal(region[0].code(), kCompare) &&
         region[1].is_branch;
}

}  // namespace

DisplacementRule RuleAgainstDisplacing(const elf::File& file,
                                       std::span<const arch::Instruction> region) {
  for (const arch::Instruction& instruction : region) {
    if (DisplacementRule rule = RuleAgainst(instruction); !rule.empty()) return rule;
  }
  // Its stack belongs to no thread, so it is not found there (stack_scan.h).
  if (file.is_go() && region.size() > 1 && !IsGoStackCheck(region)) {
    return {"goroutine preempted",
            "a goroutine may be parked between the instructions that a jump would displace"};
  }
  return {};
}

}  // namespace probed::probe

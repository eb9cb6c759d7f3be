#pragma once
// Instructions that could be displaced by a jump, as far as the flow of control goes, and are not.
// Pure.

#include <span>
#include <string_view>

#include "elf/file.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {

struct DisplacementRule {
  std::string_view name;  // short, as those of arch::RuleName
  std::string_view why;
  bool empty() const { return name.empty(); }
};

// Empty: they may be displaced. `region`: whole instructions, at least one.
DisplacementRule RuleAgainstDisplacing(const elf::File& file,
                                       std::span<const arch::Instruction> region);

}  // namespace probed::probe

#pragma once
// Instructions that could be displaced by a jump, as far as the flow of control goes, and are not.
// Pure.

#include <span>
#include <string>

#include "elf/file.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::probe {

// Why; empty: they may be displaced. `region`: whole instructions, at least one.
std::string RuleAgainstDisplacing(const elf::File& file, std::span<const arch::Instruction> region);

}  // namespace probed::probe

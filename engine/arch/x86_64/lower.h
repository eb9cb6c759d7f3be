#pragma once
// Reduces a decoded instruction to an Operation. Private to this folder.

#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/operation.h"

namespace probed::arch {

// kind == kNone for every form that is not emulated.
Operation Lower(const Disassembly& disassembly);

}  // namespace probed::arch

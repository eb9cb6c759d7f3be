#pragma once
// Decides how a decoded instruction may be executed away from its place. Private to this folder.

#include "engine/arch/x86_64/disassembler.h"
#include "engine/arch/x86_64/instruction.h"

namespace probed::arch {

// Fills everything but bytes, length and text. `capstone_length` is 0 when Capstone does not know
// it.
void Classify(const Disassembly& disassembly, uint64_t address, uint8_t capstone_length,
              Instruction& instruction);

}  // namespace probed::arch

#pragma once
// Whether a probe can stand at a place of a file, judged from the file alone. Any thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "elf/file.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/lang/definition.h"
#include "engine/probe/boundaries.h"
#include "engine/probe/probe.h"

namespace probed::probe {

// Whether a return probe leaves its function's return address alone and stands on its ret
// instructions (return_instructions.h).
bool StandsAtRet(const elf::File& file, const lang::Definition& definition,
                 const ProbeOptions& options);

// OFFSET_PAST_EOF, NOT_EXECUTABLE, NOT_INSTRUCTION_BOUNDARY (unless `force`), TRAP_INSTRUCTION,
// INSTRUCTION_REFUSED, INSTRUCTION_UNDECODABLE, RETURNS_TWICE, LOOKS_AT_RETURN_ADDRESS,
// NOT_FUNCTION_ENTRY (unless `force`).
Status JudgePlace(const elf::File& file, const lang::Definition& definition,
                  const ProbeOptions& options, Boundaries& boundaries);

// As much of the code at a place as a probe on it needs.
std::vector<uint8_t> CodeAt(const elf::File& file, FileOffset offset);

// FILE_CHANGED: the probe was defined in this file, but in other contents.
Status JudgeSame(const elf::File& file, const Probe& probe);

// The instruction in `code`, or why no probe may stand on it.
Result<arch::Instruction> DecodeForProbe(std::span<const uint8_t> code, uint64_t address);

// What to write instead of an offset where the file has no code.
std::string HintForOffset(const elf::File& file, uint64_t offset);

// "symbol+0xoff" of a place in a file; empty when no function is known there.
std::string DescribePlace(const elf::File& file, FileOffset offset);

}  // namespace probed::probe

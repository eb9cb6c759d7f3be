#pragma once
// The two decoders and what is believed when they differ. Private to this folder; any thread.

#include <Zydis/Zydis.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace probed::arch {

struct Disassembly {
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  std::span<const ZydisDecodedOperand> visible_operands() const {
    return {operands.data(), instruction.operand_count_visible};
  }
  std::span<const ZydisDecodedOperand> all_operands() const {
    return {operands.data(), instruction.operand_count};
  }
};

// Zydis is the one whose details are used: it knows every instruction Debian 12's libraries have.
std::optional<Disassembly> Disassemble(std::span<const uint8_t> code);

// Without operands, several times as fast. False: no instruction.
bool DisassembleLayout(std::span<const uint8_t> code, ZydisDecodedInstruction& instruction);

// The length according to Zydis, or 0; cheaper than Disassemble.
uint8_t InstructionLength(std::span<const uint8_t> code);

// The length according to Capstone, or 0 when it does not know the instruction.
uint8_t CapstoneLength(std::span<const uint8_t> code, uint64_t address);

std::string Format(const Disassembly& disassembly, uint64_t address);

}  // namespace probed::arch

#include "engine/arch/x86_64/flow/references.h"

#include "engine/arch/x86_64/disassembler.h"

namespace probed::arch::flow {
namespace {

using Kind = Reference::Kind;

void Add(Sketch& sketch, Kind kind, uint64_t address) {
  if (sketch.count < sketch.references.size()) {
    sketch.references[sketch.count++] = {kind, address};
  }
}

bool HasModRm(const ZydisDecodedInstruction& instruction) {
  return (instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0;
}

// mod 0 and rm 101 (SDM vol. 2, 2.2.1.6).
bool IsRipRelative(const ZydisDecodedInstruction& instruction) {
  const auto& modrm = instruction.raw.modrm;
  return HasModRm(instruction) && modrm.mod == 0 && modrm.rm == 5;
}

void DescribeControl(const ZydisDecodedInstruction& instruction, Sketch& sketch) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
      sketch.leaves = true;
      sketch.is_indirect_jump =
          instruction.raw.imm[0].is_relative == ZYAN_FALSE && !IsRipRelative(instruction);
      break;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_IRETQ:
      sketch.leaves = true;
      break;
    case ZYDIS_MNEMONIC_NOP:
    case ZYDIS_MNEMONIC_INT3:
      sketch.is_padding = true;
      break;
    case ZYDIS_MNEMONIC_XCHG:  // 66 90, which Zydis and assemblers call xchg %ax,%ax
      sketch.is_padding = instruction.opcode == 0x90 && instruction.raw.rex.B == 0 &&
                          (instruction.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0;
      break;
    case ZYDIS_MNEMONIC_ENDBR64:
      sketch.is_landing = true;
      break;
    default:
      break;
  }
}

Kind KindOfMemory(const ZydisDecodedInstruction& instruction) {
  return instruction.mnemonic == ZYDIS_MNEMONIC_LEA ? Kind::kAddress : Kind::kOperand;
}

// Sign-extended, as instructions use them; an address above 2 GiB cannot be a 32-bit constant of a
// module at a fixed address anyway.
void AddConstants(const ZydisDecodedInstruction& instruction, Sketch& sketch) {
  const auto& immediate = instruction.raw.imm[0];
  if (immediate.size >= 32 && immediate.is_relative == ZYAN_FALSE) {
    Add(sketch, Kind::kConstant, immediate.value.u);
  }
  if (instruction.raw.disp.size == 32 && !IsRipRelative(instruction)) {
    Add(sketch, Kind::kConstant, static_cast<uint64_t>(instruction.raw.disp.value));
  }
}

}  // namespace

std::optional<Sketch> SketchInstruction(std::span<const uint8_t> code, uint64_t address,
                                        bool constants_are_addresses) {
  ZydisDecodedInstruction instruction;
  if (!DisassembleLayout(code, instruction)) return std::nullopt;
  Sketch sketch;
  sketch.length = instruction.length;
  DescribeControl(instruction, sketch);
  uint64_t end = address + instruction.length;
  if (instruction.raw.imm[0].is_relative != ZYAN_FALSE) {
    Add(sketch, Kind::kBranch, end + static_cast<uint64_t>(instruction.raw.imm[0].value.s));
  }
  if (IsRipRelative(instruction)) {
    Add(sketch, KindOfMemory(instruction), end + static_cast<uint64_t>(instruction.raw.disp.value));
  }
  if (constants_are_addresses) AddConstants(instruction, sketch);
  return sketch;
}

}  // namespace probed::arch::flow

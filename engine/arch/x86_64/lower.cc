#include "engine/arch/x86_64/lower.h"

namespace probed::arch {
namespace {

using Kind = OperationKind;

RegisterNumber NumberOf(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_NONE) return kNoRegister;
  if (reg == ZYDIS_REGISTER_RIP || reg == ZYDIS_REGISTER_EIP) return kRip;
  return static_cast<RegisterNumber>(ZydisRegisterGetId(reg));
}

// Byte and word registers are left to the copy: they merge into the register instead of replacing
// it.
bool IsWideRegister(const ZydisDecodedOperand& operand) {
  if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return false;
  ZydisRegisterClass kind = ZydisRegisterGetClass(operand.reg.value);
  return kind == ZYDIS_REGCLASS_GPR64 || kind == ZYDIS_REGCLASS_GPR32;
}

Segment SegmentOf(ZydisRegister reg) {
  if (reg == ZYDIS_REGISTER_FS) return Segment::kFs;
  if (reg == ZYDIS_REGISTER_GS) return Segment::kGs;
  return Segment::kFlat;
}

MemoryOperand LowerMemory(const Disassembly& disassembly, const ZydisDecodedOperandMem& memory) {
  MemoryOperand result;
  result.base = NumberOf(memory.base);
  result.index = NumberOf(memory.index);
  result.scale = memory.index == ZYDIS_REGISTER_NONE ? 1 : memory.scale;
  result.segment = SegmentOf(memory.segment);
  result.address_is_32_bit = disassembly.instruction.address_width == 32;
  result.displacement = static_cast<int32_t>(memory.disp.value);
  return result;
}

Operand LowerOperand(const Disassembly& disassembly, const ZydisDecodedOperand& operand) {
  Operand result;
  if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
    result.kind = Operand::Kind::kImmediate;
    result.immediate = operand.imm.value.s;
  } else if (IsWideRegister(operand)) {
    result.kind = Operand::Kind::kRegister;
    result.reg = NumberOf(operand.reg.value);
  } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    result.kind = Operand::Kind::kMemory;
    result.memory = LowerMemory(disassembly, operand.mem);
  }
  return result;
}

Operation LowerStack(Kind kind, const Disassembly& disassembly) {
  const ZydisDecodedOperand& operand = disassembly.operands[0];
  if (disassembly.instruction.operand_width != 64) return {};
  if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) return {};
  Operand lowered = LowerOperand(disassembly, operand);
  if (lowered.kind == Operand::Kind::kNone) return {};  // segment registers
  if (kind == Kind::kPop) return {.kind = kind, .destination = lowered.reg};
  return {.kind = kind, .source = lowered};
}

// Register destination, register or immediate source.
Operation LowerArithmetic(Kind kind, const Disassembly& disassembly) {
  const ZydisDecodedOperand& destination = disassembly.operands[0];
  const ZydisDecodedOperand& source = disassembly.operands[1];
  if (!IsWideRegister(destination)) return {};
  bool simple = source.type == ZYDIS_OPERAND_TYPE_IMMEDIATE || IsWideRegister(source);
  if (!simple && kind != Kind::kLea) return {};
  return {.kind = kind,
          .width = static_cast<uint8_t>(destination.size / 8),
          .destination = NumberOf(destination.reg.value),
          .source = LowerOperand(disassembly, source)};
}

Operation LowerNearBranch(Kind kind, const Disassembly& disassembly) {
  if (disassembly.instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return {};
  Operand target = LowerOperand(disassembly, disassembly.operands[0]);
  if (target.kind == Operand::Kind::kNone) return {};
  return {.kind = kind, .source = target};
}

Operation LowerCounted(Kind kind, const Disassembly& disassembly) {
  Operation operation = LowerNearBranch(kind, disassembly);
  operation.width = disassembly.instruction.address_width / 8;  // 67 counts in ecx
  return operation;
}

Operation LowerReturn(const Disassembly& disassembly) {
  if (disassembly.instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) return {};
  Operation operation{.kind = Kind::kReturn};
  operation.source.immediate = disassembly.instruction.raw.imm[0].value.u & 0xffff;
  return operation;
}

bool IsConditionalJump(const ZydisDecodedInstruction& instruction) {
  uint8_t row = instruction.opcode & 0xf0;
  return (instruction.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && row == 0x70) ||
         (instruction.opcode_map == ZYDIS_OPCODE_MAP_0F && row == 0x80);
}

Operation LowerConditional(const Disassembly& disassembly) {
  Operation operation = LowerNearBranch(Kind::kJumpIf, disassembly);
  operation.condition = disassembly.instruction.opcode & 0xf;
  return operation;
}

// 0f 0d with a register does nothing on Intel's processors and is undefined on AMD's.
bool IsReservedNop(const ZydisDecodedInstruction& instruction) {
  return instruction.opcode_map == ZYDIS_OPCODE_MAP_0F && instruction.opcode == 0x0d;
}

Operation LowerByMnemonic(const Disassembly& disassembly) {
  switch (disassembly.instruction.mnemonic) {
    case ZYDIS_MNEMONIC_NOP:
      if (IsReservedNop(disassembly.instruction)) return {};
      return {.kind = Kind::kNop};
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_ENDBR32:
    case ZYDIS_MNEMONIC_ENDBR64:
      return {.kind = Kind::kNop};
    case ZYDIS_MNEMONIC_PUSH:
      return LowerStack(Kind::kPush, disassembly);
    case ZYDIS_MNEMONIC_POP:
      return LowerStack(Kind::kPop, disassembly);
    case ZYDIS_MNEMONIC_MOV:
      return LowerArithmetic(Kind::kMove, disassembly);
    case ZYDIS_MNEMONIC_LEA:
      return LowerArithmetic(Kind::kLea, disassembly);
    case ZYDIS_MNEMONIC_ADD:
      return LowerArithmetic(Kind::kAdd, disassembly);
    case ZYDIS_MNEMONIC_SUB:
      return LowerArithmetic(Kind::kSub, disassembly);
    case ZYDIS_MNEMONIC_CMP:
      return LowerArithmetic(Kind::kCompare, disassembly);
    case ZYDIS_MNEMONIC_AND:
      return LowerArithmetic(Kind::kAnd, disassembly);
    case ZYDIS_MNEMONIC_OR:
      return LowerArithmetic(Kind::kOr, disassembly);
    case ZYDIS_MNEMONIC_XOR:
      return LowerArithmetic(Kind::kXor, disassembly);
    case ZYDIS_MNEMONIC_TEST:
      return LowerArithmetic(Kind::kTest, disassembly);
    case ZYDIS_MNEMONIC_JMP:
      return LowerNearBranch(Kind::kJump, disassembly);
    case ZYDIS_MNEMONIC_CALL:
      return LowerNearBranch(Kind::kCall, disassembly);
    case ZYDIS_MNEMONIC_RET:
      return LowerReturn(disassembly);
    case ZYDIS_MNEMONIC_LOOP:
      return LowerCounted(Kind::kLoop, disassembly);
    case ZYDIS_MNEMONIC_LOOPE:
      return LowerCounted(Kind::kLoopIfEqual, disassembly);
    case ZYDIS_MNEMONIC_LOOPNE:
      return LowerCounted(Kind::kLoopIfNotEqual, disassembly);
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
      return LowerCounted(Kind::kJumpIfCountZero, disassembly);
    case ZYDIS_MNEMONIC_LEAVE:
      if (disassembly.instruction.operand_width != 64) return {};
      return {.kind = Kind::kLeave};
    default:
      return {};
  }
}

}  // namespace

Operation Lower(const Disassembly& disassembly) {
  // Some VEX encodings share a name or a category with these and are invalid on every processor
  // here.
  if (disassembly.instruction.encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY) return {};
  if (IsConditionalJump(disassembly.instruction)) return LowerConditional(disassembly);
  if (disassembly.instruction.meta.category == ZYDIS_CATEGORY_PREFETCH) {
    return {.kind = Kind::kNop};  // a prefetch never faults
  }
  return LowerByMnemonic(disassembly);
}

}  // namespace probed::arch

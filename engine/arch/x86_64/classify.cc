#include "engine/arch/x86_64/classify.h"

#include "engine/arch/x86_64/lower.h"

namespace probed::arch {
namespace {

bool IsFar(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
}

const char* RefuseByMnemonic(const ZydisDecodedInstruction& instruction) {
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_INT3:
      return "int3 is a breakpoint already";
    case ZYDIS_MNEMONIC_INT1:
      return "int1 raises a debug trap of its own";
    case ZYDIS_MNEMONIC_INT:
      return "int n enters the kernel through a software interrupt";
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
      return "the instruction is defined to be invalid";
    case ZYDIS_MNEMONIC_CLI:
    case ZYDIS_MNEMONIC_STI:
    case ZYDIS_MNEMONIC_HLT:
      return "the instruction is privileged";
    case ZYDIS_MNEMONIC_IN:
    case ZYDIS_MNEMONIC_OUT:
    case ZYDIS_MNEMONIC_INSB:
    case ZYDIS_MNEMONIC_INSW:
    case ZYDIS_MNEMONIC_INSD:
    case ZYDIS_MNEMONIC_OUTSB:
    case ZYDIS_MNEMONIC_OUTSW:
    case ZYDIS_MNEMONIC_OUTSD:
      return "the instruction does port input or output";
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UIRET:
      return "the instruction returns from an interrupt";
    case ZYDIS_MNEMONIC_SYSENTER:
      return "sysenter returns to an address that the kernel chooses";
    case ZYDIS_MNEMONIC_ENCLU:
      return "enclu saves its own address";
    default:
      return nullptr;
  }
}

// Loading ss holds the debug trap back for one instruction more, so a step would overrun.
bool LoadsStackSegment(const Disassembly& disassembly) {
  const ZydisDecodedOperand& destination = disassembly.operands[0];
  ZydisMnemonic mnemonic = disassembly.instruction.mnemonic;
  if (mnemonic == ZYDIS_MNEMONIC_LSS) return true;
  return mnemonic == ZYDIS_MNEMONIC_MOV && destination.type == ZYDIS_OPERAND_TYPE_REGISTER &&
         destination.reg.value == ZYDIS_REGISTER_SS;
}

// With 66 Intel processors branch to a 64-bit address and AMD's to a 16-bit one; REX.W (as in the
// padded calls to __tls_get_addr) overrules the prefix on both.
bool IsAmbiguousBranch(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && !IsFar(instruction) &&
         (instruction.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0 && instruction.raw.rex.W == 0;
}

bool TouchesInstructionPointer(const Disassembly& disassembly) {
  for (const ZydisDecodedOperand& operand : disassembly.all_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    if (ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_IP) return true;
  }
  return disassembly.instruction.raw.imm[0].is_relative == ZYAN_TRUE;
}

bool HasRipOperand(const Disassembly& disassembly) {
  for (const ZydisDecodedOperand& operand : disassembly.all_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
    if (ZydisRegisterGetClass(operand.mem.base) == ZYDIS_REGCLASS_IP) return true;
  }
  return false;
}

// Where the 32-bit distance is, checked against the ModRM encoding itself (mod 0, rm 101: SDM vol.
// 2, 2.2.1.6), because the copy is broken silently if the decoder is wrong here.
bool FindRipDisplacement(const ZydisDecodedInstruction& instruction, uint8_t& displacement_at) {
  const auto& raw = instruction.raw;
  if (raw.modrm.mod != 0 || raw.modrm.rm != 5) return false;
  if (raw.disp.size != 32 || raw.disp.offset != raw.modrm.offset + 1) return false;
  displacement_at = raw.disp.offset;
  return true;
}

std::string RefuseByLength(const ZydisDecodedInstruction& instruction, uint8_t capstone_length) {
  // Capstone 4.0.2 lacks GFNI, VAES on ymm, AVX-512 additions, serialize, movdir64b and others that
  // libraries use; not knowing an instruction is no contradiction. Two lengths are.
  if (capstone_length == 0 || capstone_length == instruction.length) return {};
  return "two decoders disagree on its length (" + std::to_string(instruction.length) + " and " +
         std::to_string(capstone_length) + " bytes)";
}

std::string Refuse(const Disassembly& disassembly, uint64_t address, uint8_t capstone_length) {
  const ZydisDecodedInstruction& instruction = disassembly.instruction;
  if (address >> 63 != 0) return "the address is the kernel's (vsyscall page)";
  if (const char* words = RefuseByMnemonic(instruction)) return words;
  if ((instruction.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0) {
    return "the instruction is privileged";
  }
  if (LoadsStackSegment(disassembly)) return "loading ss holds back the debug trap";
  if (instruction.mnemonic == ZYDIS_MNEMONIC_CALL && IsFar(instruction)) {
    return "a far call pushes a return address that cannot be corrected";
  }
  if (IsAmbiguousBranch(instruction)) {
    return "a branch with a 66 prefix goes to different places on Intel and AMD processors";
  }
  return RefuseByLength(instruction, capstone_length);
}

Execution ChooseCopy(const Disassembly& disassembly, Instruction& instruction) {
  const ZydisDecodedInstruction& decoded = disassembly.instruction;
  switch (decoded.mnemonic) {
    // The copy puts rcx right by itself (relocate.cc).
    case ZYDIS_MNEMONIC_SYSCALL:
      return Execution::kCopyAndJump;
    // A trap flag that the program pops must trap after the next instruction of the program, which
    // the jump back is not. A breakpoint traps by itself, with the flag saved as it was popped (SDM
    // vol. 3, 18.3.1.4: software interrupts clear it).
    case ZYDIS_MNEMONIC_POPF:
    case ZYDIS_MNEMONIC_POPFQ:
      return Execution::kCopyAndTrap;
    // The abort target is a distance like any other.
    case ZYDIS_MNEMONIC_XBEGIN:
      instruction.rip_relative = decoded.raw.imm[0].size == 32;
      instruction.displacement_at = decoded.raw.imm[0].offset;
      return instruction.rip_relative ? Execution::kCopyAndJump : Execution::kRefused;
    case ZYDIS_MNEMONIC_XABORT:
      return Execution::kCopyAndJump;  // goes where xbegin said
    default:
      break;
  }
  if (IsFar(decoded)) return Execution::kCopyAndJump;  // its target is absolute
  return TouchesInstructionPointer(disassembly) ? Execution::kRefused : Execution::kCopyAndJump;
}

void DescribeBranch(OperationKind kind, Instruction& instruction) {
  instruction.is_call = kind == OperationKind::kCall;
  instruction.is_return = kind == OperationKind::kReturn;
  instruction.is_branch = kind >= OperationKind::kJump && kind <= OperationKind::kJumpIfCountZero;
}

bool PushesFlags(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_PUSHF || mnemonic == ZYDIS_MNEMONIC_PUSHFQ;
}

bool PopsFlags(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_POPF || mnemonic == ZYDIS_MNEMONIC_POPFQ;
}

bool Repeats(const ZydisDecodedInstruction& decoded) {
  constexpr ZydisInstructionAttributes kRepeats =
      ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  return (decoded.attributes & kRepeats) != 0;
}

void RefuseWith(std::string words, Instruction& instruction) {
  instruction.execution = Execution::kRefused;
  instruction.refusal = std::move(words);
}

}  // namespace

void Classify(const Disassembly& disassembly, uint64_t address, uint8_t capstone_length,
              Instruction& instruction) {
  std::string refusal = Refuse(disassembly, address, capstone_length);
  if (!refusal.empty()) return RefuseWith(std::move(refusal), instruction);
  instruction.is_syscall = disassembly.instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
  instruction.pushes_flags = PushesFlags(disassembly.instruction.mnemonic);
  instruction.pops_flags = PopsFlags(disassembly.instruction.mnemonic);
  instruction.repeats = Repeats(disassembly.instruction);
  instruction.is_far = IsFar(disassembly.instruction);
  instruction.operation = Lower(disassembly);
  DescribeBranch(instruction.operation.kind, instruction);
  instruction.execution = instruction.operation.kind != OperationKind::kNone
                              ? Execution::kEmulate
                              : ChooseCopy(disassembly, instruction);
  if (instruction.execution == Execution::kRefused) {
    return RefuseWith("its result depends on its own address", instruction);
  }
  if (!HasRipOperand(disassembly)) return;
  instruction.rip_relative =
      FindRipDisplacement(disassembly.instruction, instruction.displacement_at);
  if (!instruction.rip_relative) {
    RefuseWith("its rip-relative operand cannot be located", instruction);
  }
}

}  // namespace probed::arch

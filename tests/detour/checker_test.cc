// What generated code promises to a program, proven by disassembling it: no vector or x87 state, no
// system call, nothing outside its part of the stack, a stack pointer that stands still.

#include <gtest/gtest.h>

#include <set>

#include "engine/arch/x86_64/disassembler.h"
#include "engine/detour/string_routines.h"
#include "tests/detour/holed_memory.h"
#include "tests/detour/installed_detour.h"
#include "tests/detour/program_generator.h"

namespace probed::detour::testing {
namespace {

constexpr uint32_t kMostStack = 264;    // of a goroutine's 2 KiB
constexpr uint32_t kReturnAddress = 8;  // of a routine
constexpr uint32_t kRedZoneBytes = 128;
// push %rbp; mov %rsp,%rbp; pop %rbp; ret
constexpr uint8_t kFunction[] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};

bool IsVectorOrX87(ZydisRegister reg) {
  switch (ZydisRegisterGetClass(reg)) {
    case ZYDIS_REGCLASS_X87:
    case ZYDIS_REGCLASS_MMX:
    case ZYDIS_REGCLASS_XMM:
    case ZYDIS_REGCLASS_YMM:
    case ZYDIS_REGCLASS_ZMM:
    case ZYDIS_REGCLASS_TMM:
    case ZYDIS_REGCLASS_MASK:
    case ZYDIS_REGCLASS_BOUND:
      return true;
    default:
      return reg == ZYDIS_REGISTER_MXCSR;
  }
}

bool IsForbidden(ZydisMnemonic mnemonic) {
  static const std::set<ZydisMnemonic> forbidden = {
      ZYDIS_MNEMONIC_SYSCALL, ZYDIS_MNEMONIC_SYSENTER, ZYDIS_MNEMONIC_INT,   ZYDIS_MNEMONIC_INT3,
      ZYDIS_MNEMONIC_CALL,    ZYDIS_MNEMONIC_RET,      ZYDIS_MNEMONIC_PUSH,  ZYDIS_MNEMONIC_POP,
      ZYDIS_MNEMONIC_POPFQ,   ZYDIS_MNEMONIC_STD,      ZYDIS_MNEMONIC_CLD,   ZYDIS_MNEMONIC_MOVSB,
      ZYDIS_MNEMONIC_MOVSQ,   ZYDIS_MNEMONIC_STOSB,    ZYDIS_MNEMONIC_STOSQ, ZYDIS_MNEMONIC_SCASB};
  return forbidden.contains(mnemonic);
}

class Checker {
 public:
  explicit Checker(const Detour& detour) : detour_(detour) {}
  // The routines, as if they were a detour.
  static Checker OfRoutines(const Detour& routines) {
    Checker checker(routines);
    checker.returns_ = true;
    return checker;
  }

  // What is wrong; empty: nothing.
  std::string Check();

 private:
  std::string CheckInstruction(const arch::Disassembly& disassembly);
  std::string CheckOperand(const ZydisDecodedOperand& operand);
  std::string CheckStackPointer(const arch::Disassembly& disassembly);
  bool CallsRoutine(const arch::Disassembly& disassembly) const;
  // "call rax" of a routine, or "ret" of one.
  bool LeavesAndComesBack(const arch::Disassembly& disassembly) const {
    if (returns_) return disassembly.instruction.mnemonic == ZYDIS_MNEMONIC_RET;
    return CallsRoutine(disassembly);
  }

  const Detour& detour_;
  bool returns_ = false;
  uint64_t routine_ = 0;  // what was moved to rax last
  uint32_t offset_ = 0;
  std::set<uint32_t> starts_;
  std::set<uint32_t> targets_;
};

bool Checker::CallsRoutine(const arch::Disassembly& disassembly) const {
  const ZydisDecodedOperand& callee = disassembly.all_operands().front();
  if (disassembly.instruction.mnemonic != ZYDIS_MNEMONIC_CALL ||
      callee.type != ZYDIS_OPERAND_TYPE_REGISTER || callee.reg.value != ZYDIS_REGISTER_RAX) {
    return false;
  }
  const StringRoutines& routines = TheStringRoutines();
  const uint64_t offset = routine_ - detour_.memory.routines;
  return offset == routines.measure || offset == routines.measure_by_kernel_rules ||
         offset == routines.copy;
}

std::string Checker::CheckOperand(const ZydisDecodedOperand& operand) {
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && IsVectorOrX87(operand.reg.value)) {
    return "register " + std::string(ZydisRegisterGetString(operand.reg.value));
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.base != ZYDIS_REGISTER_RSP)
    return "";
  if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) return "";
  const int64_t from = operand.mem.disp.has_displacement ? operand.mem.disp.value : 0;
  const int64_t until = from + operand.size / 8;
  const bool inside = from >= 0 && until <= int64_t{detour_.save_area} - kRedZoneBytes;
  const bool pushes = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN;  // push, pushfq
  return inside || pushes ? "" : "store outside the save area";
}

std::string Checker::CheckStackPointer(const arch::Disassembly& disassembly) {
  for (const ZydisDecodedOperand& operand : disassembly.all_operands()) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) continue;
    if ((operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0) continue;
    const auto whole =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value);
    if (whole != ZYDIS_REGISTER_RSP) continue;
    const uint32_t next = offset_ + disassembly.instruction.length;
    const bool is_step = std::ranges::any_of(
        detour_.epilogue, [next](const StackStep& step) { return step.offset == next; });
    const bool last = next == detour_.displaced;
    if (offset_ >= detour_.body && !is_step && !last) return "stack pointer written";
  }
  return "";
}

std::string Checker::CheckInstruction(const arch::Disassembly& disassembly) {
  const ZydisDecodedInstruction& instruction = disassembly.instruction;
  const bool saves = offset_ < detour_.body && instruction.mnemonic == ZYDIS_MNEMONIC_PUSH;
  const bool restores = !detour_.epilogue.empty() && offset_ >= detour_.epilogue.front().offset &&
                        instruction.mnemonic == ZYDIS_MNEMONIC_POP;
  if (LeavesAndComesBack(disassembly)) return "";
  if (IsForbidden(instruction.mnemonic) && !saves && !restores) return "forbidden instruction";
  if (instruction.mnemonic == ZYDIS_MNEMONIC_MOV) {
    routine_ = disassembly.all_operands()[1].imm.value.u;  // anything, unless it is a number
  }
  if (std::string wrong = CheckStackPointer(disassembly); !wrong.empty()) return wrong;
  for (const ZydisDecodedOperand& operand : disassembly.all_operands()) {
    if (std::string wrong = CheckOperand(operand); !wrong.empty()) return wrong;
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.is_relative != 0) {
      targets_.insert(offset_ + instruction.length + static_cast<uint32_t>(operand.imm.value.s));
    }
  }
  return "";
}

std::string Checker::Check() {
  const std::span<const uint8_t> code = detour_.code;
  for (offset_ = 0; offset_ < detour_.displaced;) {
    const auto disassembly = arch::Disassemble(code.subspan(offset_));
    if (!disassembly) return "undecodable";
    starts_.insert(offset_);
    if (std::string wrong = CheckInstruction(*disassembly); !wrong.empty()) {
      return wrong + ": " + arch::Format(*disassembly, offset_);
    }
    offset_ += disassembly->instruction.length;
  }
  if (offset_ != detour_.displaced) return "runs into the displaced instructions";
  for (const uint32_t target : targets_) {
    if (!starts_.contains(target)) return "branch out of the code or into an instruction";
  }
  for (const FixUp& fix_up : detour_.fix_ups) {
    if (!starts_.contains(fix_up.load) || !starts_.contains(fix_up.resume)) return "fix-up";
  }
  return "";
}

TEST(CheckerTest, GeneratedCodeLeavesTheProgramAlone) {
  HoledMemory memory(11);
  Memory ring;
  ProgramGenerator generator(memory);
  uint32_t deepest = 0;
  for (int round = 0; round < 1000; ++round) {
    const lang::FetchProgram program = generator.Next();
    const DetourProbe probe{.program = &program,
                            .limits = {.kernel_string_rules = memory.OneIn(2)},
                            .file_base = kFileBase,
                            .index = 0};
    InstalledDetour installed(ring, {&probe, 1}, kFunction);
    if (!installed.refusal().empty()) continue;
    ASSERT_EQ(Checker(installed.detour()).Check(), "");
    deepest = std::max(deepest, installed.detour().save_area + kReturnAddress);
  }
  EXPECT_LE(deepest, kMostStack);
}

TEST(CheckerTest, TheRoutinesLeaveTheProgramAlone) {
  const StringRoutines& routines = TheStringRoutines();
  Detour as_detour;
  as_detour.code = routines.code;
  as_detour.fix_ups = routines.fix_ups;
  as_detour.displaced = static_cast<uint32_t>(routines.code.size());
  EXPECT_EQ(Checker::OfRoutines(as_detour).Check(), "");
  EXPECT_NE(Checker(as_detour).Check(), "");
}

// The checker itself sees what it is there for.
TEST(CheckerTest, SeesWhatIsForbidden) {
  const std::vector<std::vector<uint8_t>> bad = {
      {0x0f, 0x10, 0x00},              // movups (%rax),%xmm0
      {0xd9, 0xe8},                    // fld1
      {0x0f, 0x05},                    // syscall
      {0xfd},                          // std
      {0x50},                          // push %rax
      {0xff, 0xd0},                    // call *%rax, not a routine
      {0xc3},                          // ret
      {0x48, 0x83, 0xec, 0x08},        // sub $8,%rsp
      {0x48, 0x89, 0x44, 0x24, 0xf8},  // mov %rax,-8(%rsp)
      {0x48, 0x89, 0x44, 0x24, 0x40},  // mov %rax,0x40(%rsp): the red zone
      {0xeb, 0x7f},                    // jmp out of the code
  };
  for (const std::vector<uint8_t>& bytes : bad) {
    Detour detour;
    detour.memory.routines = 4096;
    detour.code = bytes;
    detour.code.push_back(0x90);
    detour.displaced = static_cast<uint32_t>(detour.code.size());
    detour.prologue = {{0, 0}};
    detour.save_area = kRedZoneBytes + 64;
    EXPECT_NE(Checker(detour).Check(), "") << static_cast<int>(bytes[0]);
  }
}

}  // namespace
}  // namespace probed::detour::testing

#include "tests/arch/random_state.h"

#include <cstring>

#include "engine/arch/x86_64/disassembler.h"
#include "tests/arch/puppet.h"

namespace probed::arch {
namespace {

unsigned long long user_regs_struct::*const kGeneral[] = {
    &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx, &user_regs_struct::rbx,
    &user_regs_struct::rsp, &user_regs_struct::rbp, &user_regs_struct::rsi, &user_regs_struct::rdi,
    &user_regs_struct::r8,  &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
    &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14, &user_regs_struct::r15,
};
constexpr size_t kRspIndex = 4;

template <class T>
void WriteAt(std::vector<uint8_t>& bytes, size_t offset, T value) {
  if (offset + sizeof value <= bytes.size()) std::memcpy(&bytes[offset], &value, sizeof value);
}

bool IsVector(ZydisRegister reg) {
  ZydisRegisterClass kind = ZydisRegisterGetClass(reg);
  return kind == ZYDIS_REGCLASS_XMM || kind == ZYDIS_REGCLASS_YMM || kind == ZYDIS_REGCLASS_ZMM;
}

bool IsGeneral(ZydisRegister reg) {
  ZydisRegisterClass kind = ZydisRegisterGetClass(reg);
  return kind == ZYDIS_REGCLASS_GPR64 || kind == ZYDIS_REGCLASS_GPR32;
}

const ZydisDecodedOperand* MemoryOperandOf(const Disassembly& disassembly) {
  for (const ZydisDecodedOperand& operand : disassembly.visible_operands()) {
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) return &operand;
  }
  return nullptr;
}

}  // namespace

RandomState::RandomState(const MachineState& initial, uint64_t base, uint64_t seed)
    : initial_(initial), base_(base), random_(seed) {
  FillMemory(memory_);  // once, because it costs more than running the instruction
}

uint64_t RandomState::Below(uint64_t limit) {
  return random_() % limit;
}
bool RandomState::Chance(int percent) {
  return static_cast<int>(Below(100)) < percent;
}

uint64_t RandomState::DataAddress() {
  uint64_t data = base_ + layout::kData;
  switch (Below(20)) {
    case 0:
      return data + layout::kDataWritable - Below(64);  // over the edge of a hole
    case 1:
      return base_ + layout::kDataReadOnly + Below(4000);
    case 2:
      return data + layout::kDataWritable + Below(layout::kPage);  // in the hole
    case 3:
      return base_ + layout::kDataSecond + Below(4000);
    case 4:
      return data + 64 + Below(6000);
    default:
      return data + 512 + Below(100) * 64;
  }
}

// The code pages hold int3 but for the instruction, and next to them nothing is mapped.
uint64_t RandomState::CodeAddress() {
  return base_ + layout::kCode +
         (Chance(70) ? Below(layout::kInstruction - 64) : 0x10000 + Below(1 << 16));
}

uint64_t RandomState::StackPointer() {
  uint64_t stack = base_ + layout::kStack;
  switch (Below(25)) {
    case 0:
      return stack + Below(16);  // a push faults
    case 1:
      return stack + layout::kStackSize - Below(16);  // a pop faults
    case 2:
      return stack + 4096 + Below(4096);  // misaligned
    case 3:
      return Chance(50) ? random_() : 0x8000000000000000u;  // not canonical: SIGBUS
    default:
      return stack + 4096 + Below(512) * 16;
  }
}

uint64_t RandomState::Value() {
  switch (Below(8)) {
    case 0:
      return Below(64);
    case 1:
      return ~uint64_t{0} - Below(4);
    case 2:
      return uint64_t{1} << Below(64);
    case 3:
      return CodeAddress();
    case 4:
      return random_() >> 32;
    case 5:
      return DataAddress();
    default:
      return random_();
  }
}

void RandomState::FillRegisters(user_regs_struct& regs) {
  constexpr uint64_t kStatusFlags = 0x8d5;  // OF SF ZF AF PF CF
  constexpr uint64_t kDirectionFlag = 0x400;
  for (auto member : kGeneral)
    regs.*member = Value();
  regs.rsp = StackPointer();
  for (auto member : {&user_regs_struct::rbx, &user_regs_struct::rsi, &user_regs_struct::rdi}) {
    if (Chance(80)) regs.*member = DataAddress();
  }
  if (Chance(80)) regs.rbp = base_ + layout::kStack + 8192 + Below(256) * 8;
  if (Chance(60)) regs.rcx = Below(40);
  regs.fs_base = base_ + layout::kData + 1024;
  regs.gs_base = base_ + layout::kData + 2048;
  regs.eflags = 0x202 | (random_() & kStatusFlags) | (Chance(20) ? kDirectionFlag : 0);
  regs.rip = base_ + layout::kInstruction;
}

void RandomState::FillX87(std::vector<uint8_t>& xstate) {
  constexpr uint16_t kAllMasked = 0x037f;
  uint64_t control = Chance(90) ? kAllMasked : (random_() & 0x0f3f) | 0x40;  // bit 6 is always set
  WriteAt(xstate, 0, static_cast<uint16_t>(control));
  WriteAt<uint16_t>(xstate, 2, static_cast<uint16_t>(Below(8) << 11));  // top of stack
  WriteAt<uint16_t>(xstate, 4, Chance(70) ? 0xff : static_cast<uint16_t>(Below(256)));  // tags
  WriteAt<uint64_t>(xstate, 8, 0);
  WriteAt<uint64_t>(xstate, 16, 0);
  for (size_t at = 32; at < 160; at += 16) {
    WriteAt<uint64_t>(xstate, at, random_() | uint64_t{1} << 63);
    WriteAt<uint64_t>(xstate, at + 8, 0x3fff + Below(32) - 16 + (Below(2) << 15));
  }
}

void RandomState::FillVectors(std::vector<uint8_t>& xstate) {
  constexpr int kVectorComponents[] = {1, 2, 5, 6, 7};  // xmm, ymm, k, zmm low, zmm high
  uint64_t components = SupportedComponents(xstate);
  WriteAt(xstate, 512, components);
  FillX87(xstate);
  uint32_t mxcsr =
      Chance(90) ? 0x1f80 : 0x1f80 & ~(1u << (7 + Below(6)));          // one exception unmasked
  WriteAt(xstate, 24, mxcsr | static_cast<uint32_t>(Below(4) << 13));  // rounding
  for (int component : kVectorComponents) {
    if ((components >> component & 1) == 0) continue;
    ComponentPlace place = PlaceOfComponent(component);
    for (uint32_t at = 0; at < place.size; at += 8) {
      uint64_t value = random_();
      if (Chance(30)) value = 0x3ff0000000000000 + (random_() & 0xfffffffffffff);  // about 1.0
      if (Chance(10)) value = Below(128);
      WriteAt(xstate, place.offset + at, value);
    }
  }
}

void RandomState::FillMemory(std::vector<uint8_t>& memory) {
  memory.resize(layout::kImageSize);
  for (size_t at = 0; at < memory.size(); at += 8) {
    uint64_t value = random_();
    if (Chance(60)) value = Chance(70) ? CodeAddress() : Below(256);
    WriteAt(memory, at, value);
  }
}

void RandomState::AimMemoryOperand(std::vector<uint8_t>& code, uint64_t end, MachineState& state) {
  std::optional<Disassembly> disassembly = Disassemble(code);
  const ZydisDecodedOperand* operand = MemoryOperandOf(*disassembly);
  if (operand == nullptr || operand->mem.type == ZYDIS_MEMOP_TYPE_MIB) return;
  const auto& memory = operand->mem;
  uint64_t target = DataAddress();
  if (memory.segment == ZYDIS_REGISTER_FS) target -= state.regs.fs_base;
  if (memory.segment == ZYDIS_REGISTER_GS) target -= state.regs.gs_base;
  bool from_rip = ZydisRegisterGetClass(memory.base) == ZYDIS_REGCLASS_IP;
  const auto& raw = disassembly->instruction.raw;
  if (from_rip || (memory.base == ZYDIS_REGISTER_NONE && !IsGeneral(memory.index))) {
    if (from_rip) target -= end;
    if (raw.disp.size == 32) WriteAt(code, raw.disp.offset, static_cast<uint32_t>(target));
    return;
  }
  target -= static_cast<uint64_t>(memory.disp.value);
  if (IsGeneral(memory.index) && memory.index != memory.base) {
    uint64_t index = memory.base == ZYDIS_REGISTER_NONE ? target / memory.scale : Below(32);
    state.regs.*kGeneral[ZydisRegisterGetId(memory.index)] = index;
    target -= index * memory.scale;
  }
  if (!IsGeneral(memory.base) || ZydisRegisterGetId(memory.base) == kRspIndex) return;
  state.regs.*kGeneral[ZydisRegisterGetId(memory.base)] = target;
}

// A branch must not lead into bytes that a probe changes: past as many instructions as a run has.
void RandomState::AimRelativeBranch(std::vector<uint8_t>& code, uint64_t end) {
  std::optional<Disassembly> disassembly = Disassemble(code);
  const auto& immediate = disassembly->instruction.raw.imm[0];
  if (!immediate.is_relative) return;
  if (immediate.size == 8) code[immediate.offset] = static_cast<uint8_t>(78 + Below(82));
  if (immediate.size == 8 && code[immediate.offset] >= 0x80) code[immediate.offset] = 0x90;
  if (immediate.size == 32) {
    uint64_t target = Chance(50) ? CodeAddress() : DataAddress();
    WriteAt(code, immediate.offset, static_cast<uint32_t>(target - end));
  }
}

// Keeps an instruction from doing to the test what it would do to a program.
void RandomState::Restrain(const std::vector<uint8_t>& code, MachineState& state) {
  constexpr uint64_t kHarmlessCalls[] = {39, 102, 186, 3,
                                         1000000};  // getpid, getuid, gettid, close
  std::optional<Disassembly> disassembly = Disassemble(code);
  if (disassembly->instruction.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
    state.regs.rax = kHarmlessCalls[Below(5)];
    state.regs.rdi = ~uint64_t{0};
  }
  // Once popped, the ID flag stays: PTRACE_SETREGS cannot clear it for the next run.
  constexpr uint8_t kIdFlagInThirdByte = 0x20;
  uint64_t third = layout::StackInImage(base_, state.regs.rsp + 2);
  if (code.back() == 0x9d && third < state.memory.size()) {
    state.memory[third] &= static_cast<uint8_t>(~kIdFlagInThirdByte);
  }
  const ZydisDecodedOperand* operand = MemoryOperandOf(*disassembly);
  if (operand == nullptr || !IsVector(operand->mem.index)) return;
  const int number =
      static_cast<uint8_t>(ZydisRegisterGetId(operand->mem.index));  // gather: small indices
  for (int component : {1, 2, 6, 7}) {
    ComponentPlace place = PlaceOfComponent(component);
    uint32_t per_register = component == 1 || component == 2 ? 16 : component == 6 ? 32 : 64;
    int first = component == 7 ? 16 : 0;
    if (number < first || place.size == 0) continue;
    uint32_t begin = static_cast<uint32_t>(number - first) * per_register;
    for (uint32_t at = begin; at < begin + per_register && at < place.size; at += 8) {
      WriteAt(state.xstate, place.offset + at, Below(64));
    }
  }
}

MachineState RandomState::Make(std::vector<uint8_t>& code) {
  return Make(std::span(&code, 1));
}

MachineState RandomState::Make(std::span<std::vector<uint8_t>> run) {
  MachineState state = initial_;
  FillRegisters(state.regs);
  FillVectors(state.xstate);
  state.memory = memory_;
  uint64_t end = base_ + layout::kInstruction;
  for (std::vector<uint8_t>& code : run) {
    end += code.size();
    AimMemoryOperand(code, end, state);
    AimRelativeBranch(code, end);
    Restrain(code, state);
  }
  return state;
}

}  // namespace probed::arch

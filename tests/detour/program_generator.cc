#include "tests/detour/program_generator.h"

#include <cstring>
#include <utility>

#include "engine/lang/payload.h"
#include "engine/lang/registers.h"

namespace probed::detour::testing {

using lang::FetchOp;
using lang::FetchOpcode;

namespace {

constexpr uint64_t kMostStackSlots = 600;

}  // namespace

FetchOp& ProgramGenerator::Emit(FetchOpcode opcode) {
  code_.ops.push_back({});
  code_.ops.back().code = opcode;
  return code_.ops.back();
}

// Large ones only where they lead back to the holed memory: what else this process has may change.
int32_t ProgramGenerator::Offset() {
  if (next_offset_) return *std::exchange(next_offset_, std::nullopt);
  return static_cast<int32_t>(memory_.Below(80)) - 40;
}

// Not %sp with offsets of any size: what lies below the red zone is nobody's.
void ProgramGenerator::EmitSource() {
  const uint64_t kind = memory_.Below(16);
  if (kind == 0) {
    Emit(FetchOpcode::kStackSlot).immediate =
        memory_.OneIn(8) ? memory_.random()() >> 20 : memory_.Below(kMostStackSlots);
  } else if (kind == 1) {
    next_offset_ = static_cast<int32_t>(memory_.random()());
    Emit(FetchOpcode::kImmediate).immediate =
        memory_.Address() - static_cast<uint64_t>(int64_t{*next_offset_});
  } else if (kind == 2) {
    Emit(FetchOpcode::kFileOffset).immediate = memory_.Address() - kFileBase;
  } else if (kind == 3) {
    Emit(FetchOpcode::kArgument).index = 1;
  } else {
    auto reg = static_cast<lang::Reg>(memory_.Below(static_cast<uint64_t>(lang::Reg::kCount)));
    if (reg == lang::Reg::kSp) reg = lang::Reg::kBp;
    Emit(FetchOpcode::kRegister).index = static_cast<uint16_t>(reg);
  }
}

void ProgramGenerator::EmitValue(bool may_end_in_load) {
  EmitSource();
  for (uint64_t loads = memory_.Below(may_end_in_load ? 3 : 1); loads > 0; --loads)
    Emit(FetchOpcode::kLoad).offset = Offset();
}

void ProgramGenerator::SetShifts(FetchOp& op) {
  if (!memory_.OneIn(3)) return;
  op.shift_left = static_cast<uint8_t>(memory_.random()());
  op.shift_right = static_cast<uint8_t>(memory_.random()());
  if (memory_.OneIn(2)) op.shift_left %= 8 * op.size;
  if (memory_.OneIn(2)) op.shift_right %= 8 * op.size;
}

uint32_t ProgramGenerator::AddFixed(uint32_t bytes, bool is_string) {
  const auto slot = static_cast<uint32_t>(code_.initial.size());
  code_.initial.resize(slot + bytes);
  code_.kernel_fixed_size += is_string ? bytes / 2 : bytes;
  for (uint32_t at = slot; is_string && at < slot + bytes; at += 8)
    std::memcpy(code_.initial.data() + at + 4, &lang::kFaultSlot, sizeof(lang::kFaultSlot));
  return slot;
}

void ProgramGenerator::EmitNumber() {
  const bool in_memory = memory_.OneIn(2);
  if (in_memory) {
    EmitValue(true);
  } else {
    EmitSource();
  }
  if (!in_memory && memory_.OneIn(4)) Emit(FetchOpcode::kLoad).offset = Offset();
  FetchOp& op = Emit(in_memory ? FetchOpcode::kStoreMemory : FetchOpcode::kStoreValue);
  op.size = static_cast<uint8_t>(1u << memory_.Below(4));
  op.offset = in_memory ? Offset() : 0;
  op.count = static_cast<uint16_t>(in_memory && memory_.OneIn(3) ? 1 + memory_.Below(64) : 1);
  SetShifts(op);
  op.slot = AddFixed(op.size * op.count, false);
}

void ProgramGenerator::EmitString() {
  const uint64_t kind = memory_.Below(8);
  if (kind == 0) {
    EmitValue(true);
    FetchOp& length = Emit(FetchOpcode::kSetLength);
    length.size = static_cast<uint8_t>(1u << memory_.Below(4));
    length.is_signed = memory_.OneIn(2);
    SetShifts(length);
    EmitValue(true);
    FetchOp& op = Emit(FetchOpcode::kStoreBytes);
    op.offset = Offset();
    op.slot = AddFixed(8, true);
  } else if (kind == 1) {
    FetchOp& op = Emit(FetchOpcode::kStoreLiteral);
    op.index = static_cast<uint16_t>(code_.literals.size());
    op.slot = AddFixed(8, true);
    code_.literals.emplace_back(memory_.Below(40), 'l');
  } else if (kind == 2) {
    EmitValue(true);
    FetchOp& op = Emit(FetchOpcode::kStoreStringArray);
    op.offset = Offset();
    op.count = static_cast<uint16_t>(1 + memory_.Below(memory_.OneIn(3) ? 64 : 4));
    op.slot = AddFixed(8u * op.count, true);
  } else {
    EmitValue(true);
    FetchOp& op = Emit(FetchOpcode::kStoreString);
    op.offset = Offset();
    op.slot = AddFixed(8, true);
  }
}

void ProgramGenerator::EmitField() {
  const auto begin = static_cast<uint32_t>(code_.ops.size());
  memory_.OneIn(2) ? EmitString() : EmitNumber();
  next_offset_.reset();
  code_.fields.push_back({begin, static_cast<uint32_t>(code_.ops.size())});
}

lang::FetchProgram ProgramGenerator::Next() {
  code_ = {};
  code_.kernel_fixed_size = 16;
  const uint64_t fields = memory_.Below(memory_.OneIn(30) ? 129 : 6);
  for (uint64_t i = 0; i < fields; ++i)
    EmitField();
  return lang::FetchProgram(code_);
}

}  // namespace probed::detour::testing

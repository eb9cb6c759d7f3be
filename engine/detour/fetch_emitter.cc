#include "engine/detour/fetch_emitter.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/detour/body_registers.h"
#include "engine/detour/string_search.h"
#include "engine/lang/payload.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using lang::FetchCode;
using lang::FetchField;
using lang::FetchOp;
using lang::FetchOpcode;
using Xbyak::CodeGenerator;

namespace {

bool StoresData(FetchOpcode code) {
  return code == FetchOpcode::kStoreString || code == FetchOpcode::kStoreStringArray ||
         code == FetchOpcode::kStoreBytes || code == FetchOpcode::kStoreLiteral;
}

// The most that one operation can add behind the fixed part.
uint64_t MostData(const FetchOp& op, const FetchCode& code, uint32_t max_string) {
  switch (op.code) {
    case FetchOpcode::kStoreString:
    case FetchOpcode::kStoreBytes:
      return max_string;
    case FetchOpcode::kStoreStringArray:
      return uint64_t{op.count} * max_string;
    case FetchOpcode::kStoreLiteral:
      return code.literals[op.index].size();
    default:
      return 0;
  }
}

}  // namespace

Error Unsupported(std::string_view what) {
  return {.code = ErrorCode::kUnimplemented,
          .reason = "DETOUR_UNSUPPORTED",
          .message = std::string(what) + " needs the daemon",
          .hint = "",
          .metadata = {{"what", std::string(what)}}};
}

FetchEmitter::FetchEmitter(Assembler& assembler, const DetourProbe& probe, const HitPlace& place)
    : a_(assembler),
      probe_(probe),
      code_(probe.program->code()),
      place_(place),
      payload_(place.is_return ? kReturnPayload : kEntryPayload),
      max_string_(lang::LongestString(probe.limits)),
      strings_(assembler, place.memory.routines, payload_, max_string_,
               probe.limits.kernel_string_rules) {}

Status FetchEmitter::Check(const DetourProbe& probe) {
  const FetchCode& code = probe.program->code();
  uint64_t most = kReturnPayload + code.initial.size() + 2 * ring::kRecordAlignment;
  for (const FetchOp& op : code.ops) {
    if (op.code == FetchOpcode::kStoreComm) return Unsupported("$comm");
    if (op.code == FetchOpcode::kVector) return Unsupported("a vector register");
    if (op.code == FetchOpcode::kArgument && op.index > ring::kShadowArguments) {
      return Unsupported("an argument at return that was passed on the stack");
    }
    most += MostData(op, code, lang::LongestString(probe.limits));
  }
  if (most > ring::kMaxRecordBytes) return Unsupported("a record that may exceed 512 KiB");
  return {};
}

bool FetchEmitter::HasData(const DetourProbe& probe) {
  return std::ranges::any_of(probe.program->code().ops,
                             [](const FetchOp& op) { return StoresData(op.code); });
}

FrameNeeds FetchEmitter::NeedsOf(const DetourProbe& probe) {
  const bool flags = std::ranges::any_of(probe.program->code().ops, [](const FetchOp& op) {
    return op.code == FetchOpcode::kRegister &&
           op.index == static_cast<uint16_t>(lang::Reg::kFlags);
  });
  return {.strings = HasData(probe), .full_flags = flags};
}

uint32_t FetchEmitter::literal_bytes() const {
  uint32_t bytes = 0;
  if (probe_.limits.kernel_string_rules) return bytes;
  for (const FetchOp& op : code_.ops) {
    if (op.code == FetchOpcode::kStoreLiteral)
      bytes += static_cast<uint32_t>(code_.literals[op.index].size());
  }
  return bytes;
}

bool FetchEmitter::IsMeasured(const FetchField& field) const {
  const FetchOpcode last = code_.ops[field.end - 1].code;
  return StoresData(last) && last != FetchOpcode::kStoreLiteral;
}

// A field that no fault can leave at its initial value.
bool FetchEmitter::IsCertain(const FetchField& field) const {
  if (code_.ops[field.end - 1].code != FetchOpcode::kStoreValue) return false;
  for (uint32_t i = field.begin; i < field.end; ++i) {
    if (code_.ops[i].code == FetchOpcode::kLoad) return false;
  }
  return true;
}

const FetchOp* FetchEmitter::FirstMeasured() const {
  const auto field = std::ranges::find_if(
      code_.fields, [this](const FetchField& candidate) { return IsMeasured(candidate); });
  return field != code_.fields.end() ? &code_.ops[field->begin] : nullptr;
}

void FetchEmitter::Measure(bool untouched) {
  a_.xor_(kTotal.cvt32(), kTotal.cvt32());
  direct_ = untouched ? FirstMeasured() : nullptr;
  EmitFields(Pass::kMeasure);
  direct_ = nullptr;
}

void FetchEmitter::Store() {
  StoreInitial();
  if (HasData(probe_)) {
    if (SearchesTwice()) LoadHighBits(a_);
    a_.lea(kCursor, ptr[kRecord + (payload_ + fixed_bytes())]);
  }
  EmitFields(Pass::kStore);
}

// The first strings have room on the stack for their length words, the others are searched twice.
std::optional<uint32_t> FetchEmitter::LengthWordOf(const FetchCode& code,
                                                   const FetchField& wanted) {
  uint32_t strings = 0;
  for (const FetchField& field : code.fields) {
    if (code.ops[field.end - 1].code != FetchOpcode::kStoreString) continue;
    if (&field == &wanted && strings < kLengthWords) return strings;
    ++strings;
  }
  return std::nullopt;
}

bool FetchEmitter::NeedsLimit() const {
  return SearchesTwice() || std::ranges::any_of(code_.ops, [](const FetchOp& op) {
           return op.code == FetchOpcode::kStoreBytes || op.code == FetchOpcode::kStoreLiteral;
         });
}

bool FetchEmitter::SearchesTwice() const {
  return std::ranges::any_of(code_.fields, [this](const FetchField& field) {
    const FetchOpcode store = code_.ops[field.end - 1].code;
    return store == FetchOpcode::kStoreStringArray ||
           (store == FetchOpcode::kStoreString && !LengthWordOf(code_, field));
  });
}

void FetchEmitter::EmitFields(Pass pass) {
  for (const FetchField& field : code_.fields) {
    if (const auto word = LengthWordOf(code_, field)) {
      const uint32_t length_word = a_.frame().length_word(*word);
      pass == Pass::kMeasure ? MeasureString(field, length_word) : StoreString(field, length_word);
    } else if (pass == Pass::kStore || IsMeasured(field)) {
      EmitField(field, pass);
    }
  }
}

void FetchEmitter::MeasureString(const FetchField& field, uint32_t length_word) {
  Label leave;
  static_assert(lang::kFaultSlot == ~0u);
  a_.or_(dword[rsp + length_word], -1);
  for (uint32_t i = field.begin; i + 1 < field.end; ++i)
    EmitOp(code_.ops[i], Pass::kMeasure, leave);
  strings_.Measure(code_.ops[field.end - 1].offset, length_word);
  a_.L(leave);
}

void FetchEmitter::StoreString(const FetchField& field, uint32_t length_word) {
  const auto missing = std::make_shared<Label>();
  const auto done = std::make_shared<Label>();
  const FetchOp& store = code_.ops[field.end - 1];
  a_.cmp(dword[rsp + length_word], -1);
  a_.je(*missing, CodeGenerator::T_NEAR);
  for (uint32_t i = field.begin; i + 1 < field.end; ++i)
    EmitOp(code_.ops[i], Pass::kStore, *missing);
  StringCode::MeasuredSlot slot{.offset = store.slot, .begin = {}};
  if (IsFirstData(field)) slot.begin = fixed_bytes();
  strings_.CopyMeasured(store.offset, length_word, slot, *missing);
  a_.L(*done);
  a_.Later([=, this] {
    a_.L(*missing);
    StoreInitial(store.slot, store.slot + sizeof(uint64_t));
    a_.jmp(*done);
  });
}

// Nothing stands between the fixed part and what it stores.
bool FetchEmitter::IsFirstData(const FetchField& wanted) const {
  const auto first = std::ranges::find_if(code_.fields, [this](const FetchField& field) {
    return StoresData(code_.ops[field.end - 1].code);
  });
  return first != code_.fields.end() && &*first == &wanted;
}

void FetchEmitter::EmitField(const FetchField& field, Pass pass) {
  Label leave;
  for (uint32_t i = field.begin; i < field.end; ++i)
    EmitOp(code_.ops[i], pass, leave);
  a_.L(leave);
}

void FetchEmitter::EmitOp(const FetchOp& op, Pass pass, Label& leave) {
  const bool measure = pass == Pass::kMeasure;
  switch (op.code) {
    case FetchOpcode::kSetLength:
      return SetLength(op);
    case FetchOpcode::kStoreValue:
      ExtractBits(op);
      return StoreNumber(kRecord + (payload_ + op.slot), op.size);
    case FetchOpcode::kStoreMemory:
      return StoreMemory(op);
    case FetchOpcode::kStoreString:
      return measure ? strings_.Measure(op.offset) : strings_.Copy(op.offset, {.offset = op.slot});
    case FetchOpcode::kStoreStringArray:
      return EmitStringArray(op, pass, leave);
    case FetchOpcode::kStoreBytes:
      return measure ? MeasureBytes(op, leave) : StoreBytes(op);
    case FetchOpcode::kStoreLiteral:
      return StoreLiteral(op, leave);
    case FetchOpcode::kStoreComm:
      return;  // Check refused it
    default:
      return Produce(op, leave);
  }
}

void FetchEmitter::Produce(const FetchOp& op, Label& leave) {
  switch (op.code) {
    case FetchOpcode::kRegister:
      return &op == direct_ ? CopyRegister(static_cast<lang::Reg>(op.index))
                            : LoadRegister(static_cast<lang::Reg>(op.index));
    case FetchOpcode::kStackSlot:
      return LoadStackSlot(op.immediate);
    case FetchOpcode::kImmediate:
      return a_.mov(kValue, op.immediate);
    case FetchOpcode::kFileOffset:
      return a_.mov(kValue, probe_.file_base + op.immediate);
    case FetchOpcode::kArgument:
      if (!place_.is_return) return a_.xor_(eax, eax);  // entry probes read theirs live
      return LoadFromShadowFrame(offsetof(ring::ShadowFrame, arguments) + 8 * (op.index - 1u));
    default:  // kLoad
      a_.MayFault(leave);
      a_.mov(kValue, ptr[kValue + op.offset]);
  }
}

void FetchEmitter::LoadRegister(lang::Reg reg) {
  if (place_.is_return && reg == lang::Reg::kIp) {
    return LoadFromShadowFrame(offsetof(ring::ShadowFrame, caller));
  }
  a_.LoadProgramRegister(kValue, reg, place_.function);
}

void FetchEmitter::CopyRegister(lang::Reg reg) {
  const auto number = NumberOf(reg);
  if (!number || std::ranges::find(kUntouched, *number) == kUntouched.end())
    return LoadRegister(reg);
  a_.mov(kValue, Xbyak::Reg64(*number));
}

void FetchEmitter::LoadFromShadowFrame(size_t offset) {
  a_.mov(rax, a_.Slot(a_.frame().shadow_frame()));
  a_.mov(rax, ptr[rax + offset]);
}

void FetchEmitter::LoadStackSlot(uint64_t index) {
  Label unreadable;
  a_.mov(rcx, a_.frame().size() + 8 * index);
  a_.xor_(eax, eax);
  a_.MayFault(unreadable);
  a_.mov(kValue, ptr[rsp + rcx]);
  a_.L(unreadable);
}

void FetchEmitter::LoadNumber(const FetchField& field) {
  const auto unreadable = std::make_shared<Label>();
  const auto done = std::make_shared<Label>();
  const auto partly = std::make_shared<Label>();
  const FetchOp& store = code_.ops[field.end - 1];
  for (uint32_t i = field.begin; i + 1 < field.end; ++i)
    EmitOp(code_.ops[i], Pass::kMeasure, *unreadable);
  if (store.code == FetchOpcode::kStoreMemory) {
    a_.lea(rsi, ptr[kValue + store.offset]);
    LoadElement(store, *partly);
    a_.Later([=, this] { LoadPartly(store, *partly, *done); });
  }
  a_.L(*done);
  ExtractBits(store);
  a_.Later([=, this] {
    a_.L(*unreadable);
    a_.xor_(eax, eax);
    a_.jmp(*done, CodeGenerator::T_NEAR);
  });
}

void FetchEmitter::LoadAddress(const FetchField& field, Label& unreadable) {
  const FetchOp& store = code_.ops[field.end - 1];
  for (uint32_t i = field.begin; i + 1 < field.end; ++i)
    EmitOp(code_.ops[i], Pass::kMeasure, unreadable);
  a_.lea(kValue, ptr[kValue + store.offset]);
}

}  // namespace probed::detour

#include "engine/lang/compile.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "engine/lang/calling_convention.h"
#include "engine/lang/payload.h"

namespace probed::lang {
namespace {

// The kernel's record starts with 8 common bytes and one address, two on return probes.
constexpr uint32_t kKernelEntryHeader = 16;
constexpr uint32_t kKernelReturnHeader = 24;

class Compiler {
 public:
  explicit Compiler(const Definition& definition)
      : kind_(definition.kind), registers_(ArgumentRegisters(definition.convention)) {
    code_.initial.resize(definition.schema.fixed_size);
    code_.kernel_fixed_size =
        kind_ == ProbeKind::kReturn ? kKernelReturnHeader : kKernelEntryHeader;
  }

  void Add(const Argument& argument, const FieldSchema& field);
  FetchCode Take() { return std::move(code_); }

 private:
  FetchOp& Emit(FetchOpcode opcode) {
    code_.ops.push_back({});
    code_.ops.back().code = opcode;
    return code_.ops.back();
  }
  void EmitSource(const Source& source);
  void EmitArgument(uint32_t number);
  void EmitLoads(std::span<const Load> loads);
  void EmitValue(const FetchExpression& expression);
  void EmitLength(const LengthArgument& length);
  void EmitStringStore(const Argument& argument, const FieldSchema& field);
  void EmitNumberStore(const Argument& argument, const FieldSchema& field);
  void SetFaults(const FieldSchema& field);

  ProbeKind kind_;
  std::span<const Reg> registers_;
  FetchCode code_;
};

// The kernel shifts in the container's width, with 8-bit shift counts.
void SetShifts(const ArgType& type, FetchOp& op) {
  if (type.bit_width == 0) return;
  const uint32_t bits = 8 * ElementSize(type.base);
  op.shift_left = static_cast<uint8_t>(bits - type.bit_width - type.bit_offset);
  op.shift_right = static_cast<uint8_t>(bits - type.bit_width);
}

void Compiler::EmitArgument(uint32_t number) {
  if (kind_ == ProbeKind::kReturn) {
    Emit(FetchOpcode::kArgument).index = static_cast<uint16_t>(number);
  } else if (number <= registers_.size()) {
    Emit(FetchOpcode::kRegister).index = static_cast<uint16_t>(registers_[number - 1]);
  } else {
    // Slot 0 is the return address.
    Emit(FetchOpcode::kStackSlot).immediate = number - registers_.size();
  }
}

void Compiler::EmitSource(const Source& source) {
  switch (source.kind) {
    case SourceKind::kRegister:
      Emit(FetchOpcode::kRegister).index = static_cast<uint16_t>(source.reg);
      break;
    case SourceKind::kReturnValue:
      Emit(FetchOpcode::kRegister).index = static_cast<uint16_t>(Reg::kAx);
      break;
    case SourceKind::kStackSlot:
      Emit(FetchOpcode::kStackSlot).immediate = source.number;
      break;
    case SourceKind::kImmediate:
      Emit(FetchOpcode::kImmediate).immediate = source.number;
      break;
    case SourceKind::kFileOffset:
      Emit(FetchOpcode::kFileOffset).immediate = source.number;
      break;
    case SourceKind::kVector:
      Emit(FetchOpcode::kVector).index = static_cast<uint16_t>(source.number);
      break;
    case SourceKind::kArgument:
      EmitArgument(static_cast<uint32_t>(source.number));
      break;
    case SourceKind::kComm:
    case SourceKind::kLiteral:
      break;  // their stores need no value
  }
}

void Compiler::EmitLoads(std::span<const Load> loads) {
  for (const Load& load : loads)
    Emit(FetchOpcode::kLoad).offset = load.offset;
}

void Compiler::EmitValue(const FetchExpression& expression) {
  EmitSource(expression.source);
  EmitLoads(expression.loads);
}

void Compiler::EmitLength(const LengthArgument& length) {
  EmitValue(length.expression);
  FetchOp& op = Emit(FetchOpcode::kSetLength);
  op.size = static_cast<uint8_t>(ElementSize(length.type.base));
  op.is_signed = IsSigned(length.type.base);
  SetShifts(length.type, op);
}

// The outermost load is part of the store.
void Compiler::EmitStringStore(const Argument& argument, const FieldSchema& field) {
  const FetchExpression& expression = argument.expression;
  const auto store = [&](FetchOpcode opcode) -> FetchOp& {
    FetchOp& op = Emit(opcode);
    op.slot = field.offset;
    op.count = argument.type.count;
    return op;
  };
  if (expression.loads.empty() && expression.source.kind == SourceKind::kComm) {
    store(FetchOpcode::kStoreComm);
    return;
  }
  if (expression.loads.empty() && expression.source.kind == SourceKind::kLiteral) {
    store(FetchOpcode::kStoreLiteral).index = static_cast<uint16_t>(code_.literals.size());
    code_.literals.push_back(expression.source.text);
    return;
  }
  if (argument.length) EmitLength(*argument.length);
  EmitSource(expression.source);
  const std::span<const Load> loads = expression.loads;
  if (!loads.empty()) EmitLoads(loads.first(loads.size() - 1));
  FetchOpcode opcode = FetchOpcode::kStoreString;
  if (argument.type.base == BaseType::kBytes) opcode = FetchOpcode::kStoreBytes;
  // An array over a constant has one element that can be read: the string at that address.
  if (argument.type.is_array && !loads.empty()) opcode = FetchOpcode::kStoreStringArray;
  store(opcode).offset = loads.empty() ? 0 : loads.back().offset;
}

void Compiler::EmitNumberStore(const Argument& argument, const FieldSchema& field) {
  const std::span<const Load> loads = argument.expression.loads;
  EmitSource(argument.expression.source);
  if (!loads.empty()) EmitLoads(loads.first(loads.size() - 1));
  FetchOp& op = Emit(loads.empty() ? FetchOpcode::kStoreValue : FetchOpcode::kStoreMemory);
  op.slot = field.offset;
  op.count = argument.type.count;
  op.size = static_cast<uint8_t>(ElementSize(argument.type.base));
  if (!loads.empty()) op.offset = loads.back().offset;
  SetShifts(argument.type, op);
}

void Compiler::SetFaults(const FieldSchema& field) {
  for (uint32_t i = 0; i < field.type.count; ++i) {
    std::byte* slot = code_.initial.data() + field.offset + 8 * i;
    std::memcpy(slot + sizeof(uint32_t), &kFaultSlot, sizeof(kFaultSlot));
  }
}

void Compiler::Add(const Argument& argument, const FieldSchema& field) {
  const auto begin = static_cast<uint32_t>(code_.ops.size());
  if (IsStringLike(argument.type.base)) {
    SetFaults(field);
    EmitStringStore(argument, field);
  } else {
    EmitNumberStore(argument, field);
  }
  code_.kernel_fixed_size += KernelSize(argument.type);
  code_.fields.push_back({begin, static_cast<uint32_t>(code_.ops.size())});
}

uint32_t EntryArgumentOf(const FetchExpression& expression) {
  if (expression.source.kind != SourceKind::kArgument) return 0;
  return static_cast<uint32_t>(expression.source.number);
}

}  // namespace

FetchProgram Compile(const std::vector<Argument>& arguments, const Definition& definition) {
  Compiler compiler(definition);
  for (size_t i = 0; i < arguments.size(); ++i) {
    compiler.Add(arguments[i], definition.schema.fields[i]);
  }
  return FetchProgram(compiler.Take());
}

uint32_t HighestEntryArgument(const std::vector<Argument>& arguments, ProbeKind kind) {
  uint32_t highest = 0;
  if (kind == ProbeKind::kEntry) return highest;
  for (const Argument& argument : arguments) {
    highest = std::max(highest, EntryArgumentOf(argument.expression));
    if (argument.length) highest = std::max(highest, EntryArgumentOf(argument.length->expression));
  }
  return highest;
}

}  // namespace probed::lang

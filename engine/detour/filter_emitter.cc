#include "engine/detour/filter_emitter.h"

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "engine/detour/body_registers.h"

namespace probed::detour {

using namespace Xbyak::util;  // registers
using lang::FetchField;
using lang::FetchOp;
using lang::FetchOpcode;
using lang::FilterNumber;
using lang::FilterOp;
using lang::FilterOperand;
using lang::FilterPattern;
using lang::FilterTest;
using Xbyak::CodeGenerator;

namespace {

constexpr auto kNear = CodeGenerator::T_NEAR;
constexpr size_t kLongestText = 64;
constexpr uint64_t kSetBits = 64;

// The field whose element is at `offset` of the payload, if it has just that one.
const FetchField* FieldAt(const lang::FetchCode& code, uint32_t offset) {
  for (const FetchField& field : code.fields) {
    const FetchOp& store = code.ops[field.end - 1];
    if (store.slot == offset && store.count == 1) return &field;
  }
  return nullptr;
}

// Why the daemon must compare it; null: it need not.
const char* ObstacleOfField(const FilterOp& op, const DetourProbe& probe) {
  const FetchField* field = FieldAt(probe.program->code(), op.offset);
  if (field == nullptr) return "a filter on an array";
  const FetchOp& store = probe.program->code().ops[field->end - 1];
  if (op.test != FilterTest::kText) {
    const bool number =
        store.code == FetchOpcode::kStoreValue || store.code == FetchOpcode::kStoreMemory;
    return number && store.size == op.size ? nullptr : "a filter on part of a field";
  }
  if (store.code != FetchOpcode::kStoreString) return "a filter on text that is no string";
  const FilterPattern& pattern = probe.filter->patterns[op.index];
  const bool whole = pattern.kind == FilterPattern::Kind::kWhole && pattern.min_length <= 0;
  if (!whole) return "a filter with a pattern";
  const size_t size = pattern.text.size();
  // Not the empty text, which a string that cannot be read equals.
  const bool fits = size > 0 && size <= kLongestText && size < lang::LongestString(probe.limits);
  return fits && pattern.text.find('\0') == std::string::npos ? nullptr
                                                              : "a filter on so long a text";
}

const char* ObstacleOf(const FilterOp& op, const DetourProbe& probe) {
  if (op.test == FilterTest::kNever) return nullptr;
  if (op.number == FilterNumber::kFloat) return "a filter on a floating-point number";
  if (op.test == FilterTest::kInSet && probe.filter->sets[op.index].size() > 1) {
    return "a filter on so large a set";
  }
  switch (op.operand) {
    case FilterOperand::kField:
      return ObstacleOfField(op, probe);
    case FilterOperand::kThread:
      return "a filter on the thread's number";
    case FilterOperand::kCpu:
      return "a filter on the CPU";
    case FilterOperand::kEventId:
      return "a filter on the event's number";
    case FilterOperand::kComm:
      return "a filter on COMM";
    default:
      return nullptr;
  }
}

}  // namespace

Status FilterEmitter::Check(const DetourProbe& probe) {
  for (const FilterOp& op : probe.filter->ops) {
    if (const char* obstacle = ObstacleOf(op, probe)) return Unsupported(obstacle);
  }
  return {};
}

void FilterEmitter::Emit(Label& drop) {
  const size_t count = code_.ops.size();
  std::vector<Label> places(count + 1);  // the last: pass
  const auto place = [&](uint32_t at) -> Label& { return at <= count ? places[at] : drop; };
  for (size_t i = 0; i < count; ++i) {
    const FilterOp& op = code_.ops[i];
    a_.L(places[i]);
    EmitOp(op, place(op.if_true), place(op.if_false));
    if (op.if_false != i + 1) a_.jmp(place(op.if_false), kNear);
  }
  a_.L(places[count]);
}

// Falls through, or jumps to `if_false`, when the test fails.
void FilterEmitter::EmitOp(const FilterOp& op, Label& if_true, Label& if_false) {
  if (op.test == FilterTest::kNever) return;
  if (op.test == FilterTest::kText) return CompareText(op, if_true, if_false);
  LoadOperand(op);
  if (op.test == FilterTest::kInSet) return TestMembership(op, if_true, if_false);
  CompareNumber(op, if_true);
}

// rax = the operand, extended.
void FilterEmitter::LoadOperand(const FilterOp& op) {
  switch (op.operand) {
    case FilterOperand::kField:
      fetch_.LoadNumber(*FieldAt(probe_.program->code(), op.offset));
      break;
    case FilterOperand::kZero:
      a_.xor_(eax, eax);
      break;
    case FilterOperand::kIp:
      fetch_.LoadRegister(lang::Reg::kIp);
      break;
    default:  // kFunction
      a_.mov(rax, place_.function);
  }
  const bool is_signed = op.number == FilterNumber::kSigned;
  if (op.size == 1) is_signed ? a_.movsx(rax, al) : a_.movzx(eax, al);
  if (op.size == 2) is_signed ? a_.movsx(rax, ax) : a_.movzx(eax, ax);
  if (op.size == 4) is_signed ? a_.movsxd(rax, eax) : a_.mov(eax, eax);
}

void FilterEmitter::CompareNumber(const FilterOp& op, Label& if_true) {
  const bool is_signed = op.number == FilterNumber::kSigned;
  a_.mov(rcx, op.value);
  if (op.test == FilterTest::kAnyBit) {
    a_.test(rax, rcx);
    return a_.jnz(if_true, kNear);
  }
  a_.cmp(rax, rcx);
  switch (op.test) {
    case FilterTest::kLess:
      return is_signed ? a_.jl(if_true, kNear) : a_.jb(if_true, kNear);
    case FilterTest::kLessEqual:
      return is_signed ? a_.jle(if_true, kNear) : a_.jbe(if_true, kNear);
    case FilterTest::kGreater:
      return is_signed ? a_.jg(if_true, kNear) : a_.ja(if_true, kNear);
    case FilterTest::kGreaterEqual:
      return is_signed ? a_.jge(if_true, kNear) : a_.jae(if_true, kNear);
    default:
      return a_.je(if_true, kNear);
  }
}

void FilterEmitter::TestMembership(const FilterOp& op, Label& if_true, Label& if_false) {
  const lang::FilterSet& set = code_.sets[op.index];
  a_.cmp(rax, kSetBits);
  a_.jae(if_false, kNear);
  a_.mov(rcx, set.empty() ? 0 : set[0]);
  a_.bt(rcx, rax);
  a_.jc(if_true, kNear);
}

// Byte for byte, so that no load touches memory behind a difference. A string that cannot be read
// as far as that equals nothing.
void FilterEmitter::CompareText(const FilterOp& op, Label& if_true, Label& if_false) {
  const FetchField& field = *FieldAt(probe_.program->code(), op.offset);
  const std::string& text = code_.patterns[op.index].text;
  fetch_.LoadAddress(field, if_false);
  for (size_t i = 0; i <= text.size(); ++i) {
    a_.MayFault(if_false);
    a_.cmp(byte[kValue + i], static_cast<uint8_t>(text.c_str()[i]));
    if (i < text.size()) a_.jne(if_false, kNear);
  }
  a_.je(if_true, kNear);
}

}  // namespace probed::detour

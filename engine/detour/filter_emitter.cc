#include "engine/detour/filter_emitter.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "engine/detour/body_registers.h"
#include "engine/detour/float_interval.h"
#include "engine/detour/pattern_code.h"
#include "engine/lang/filter_pattern.h"
#include "engine/lang/payload.h"

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
constexpr size_t kMostSetWords = 16;  // 1024 CPUs
constexpr uint32_t kSetBits = 64;

// The field whose element is at `offset` of the payload, if it has just that one.
const FetchField* FieldAt(const lang::FetchCode& code, uint32_t offset) {
  for (const FetchField& field : code.fields) {
    const FetchOp& store = code.ops[field.end - 1];
    if (store.slot == offset && store.count == 1) return &field;
  }
  return nullptr;
}

// It equals a text that can be compared as it is read, without its length. Not the empty text,
// which a string that cannot be read equals.
bool IsPlainText(const FilterPattern& pattern, const DetourProbe& probe) {
  const size_t size = pattern.text.size();
  return pattern.kind == FilterPattern::Kind::kWhole && size > 0 && size <= kLongestText &&
         size < lang::LongestString(probe.limits) && pattern.text.find('\0') == std::string::npos;
}

const char* ObstacleOfText(const FetchField& field, const FilterOp& op, const DetourProbe& probe) {
  const lang::FetchCode& code = probe.program->code();
  const FilterPattern& pattern = probe.filter->patterns[op.index];
  const FetchOpcode store = code.ops[field.end - 1].code;
  if (store == FetchOpcode::kStoreLiteral) return nullptr;
  if (store != FetchOpcode::kStoreString) return "a filter on text that is no string";
  if (IsPlainText(pattern, probe) || FetchEmitter::LengthWordOf(code, field)) return nullptr;
  return "a filter with a pattern on so many strings";
}

// Why the daemon must compare it; null: it need not.
const char* ObstacleOfField(const FilterOp& op, const DetourProbe& probe) {
  const FetchField* field = FieldAt(probe.program->code(), op.offset);
  if (field == nullptr) return "a filter on an array";
  if (op.test == FilterTest::kText) return ObstacleOfText(*field, op, probe);
  const FetchOp& store = probe.program->code().ops[field->end - 1];
  const bool number =
      store.code == FetchOpcode::kStoreValue || store.code == FetchOpcode::kStoreMemory;
  return number && store.size >= op.size ? nullptr : "a filter on part of a field";
}

const char* ObstacleOf(const FilterOp& op, const DetourProbe& probe) {
  if (op.test == FilterTest::kNever) return nullptr;
  if (op.test == FilterTest::kInSet && probe.filter->sets[op.index].size() > kMostSetWords) {
    return "a filter on so large a set";
  }
  switch (op.operand) {
    case FilterOperand::kField:
      return ObstacleOfField(op, probe);
    case FilterOperand::kThread:
      return "a filter on the thread's number";
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

bool FilterEmitter::NeedsLengths(const DetourProbe& probe) {
  const lang::FetchCode& code = probe.program->code();
  return std::ranges::any_of(probe.filter->ops, [&](const FilterOp& op) {
    if (op.test != FilterTest::kText) return false;
    const FetchField& field = *FieldAt(code, op.offset);
    return code.ops[field.end - 1].code == FetchOpcode::kStoreString &&
           !IsPlainText(probe.filter->patterns[op.index], probe);
  });
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
  if (op.number == FilterNumber::kFloat) return CompareFloat(op, if_true);
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
    case FilterOperand::kCpu:
      LoadCpu();
      break;
    case FilterOperand::kEventId:
      a_.mov(eax, probe_.event_id);
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

// As kernels set both up (vdso_encode_cpunode): the node's number is above.
void FilterEmitter::LoadCpu() {
  place_.has_rdpid ? a_.ReadProcessorId(rcx) : a_.rdtscp();
  a_.mov(eax, ecx);
  a_.and_(eax, 0xfff);
}

void FilterEmitter::CompareFloat(const FilterOp& op, Label& if_true) {
  const auto passing = PassingOrders(op);
  if (!passing) return;
  const bool narrow = op.size == sizeof(float);
  const Xbyak::Reg& value = narrow ? static_cast<const Xbyak::Reg&>(eax) : rax;
  const Xbyak::Reg& temporary = narrow ? static_cast<const Xbyak::Reg&>(ecx) : rcx;
  // Negative numbers are inverted, the others get the sign bit.
  a_.mov(temporary, value);
  a_.sar(temporary, 8 * op.size - 1);
  a_.bts(temporary, 8 * op.size - 1);
  a_.xor_(value, temporary);
  a_.mov(rcx, passing->first);
  a_.sub(value, temporary);
  a_.mov(rcx, passing->last - passing->first);
  a_.cmp(value, temporary);
  a_.jbe(if_true, kNear);
}

// One test for each word of the set that has members.
void FilterEmitter::TestMembership(const FilterOp& op, Label& if_true, Label& if_false) {
  const lang::FilterSet& set = code_.sets[op.index];
  a_.mov(rdx, rax);
  a_.shr(rdx, std::countr_zero(kSetBits));
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i] == 0) continue;
    Label next;
    a_.cmp(rdx, static_cast<uint32_t>(i));
    a_.jne(next);
    a_.mov(rcx, set[i]);
    a_.bt(rcx, rax);  // of the bit's number the low 6 bits count
    a_.jc(if_true, kNear);
    a_.jmp(if_false, kNear);
    a_.L(next);
  }
}

void FilterEmitter::CompareText(const FilterOp& op, Label& if_true, Label& if_false) {
  const lang::FetchCode& code = probe_.program->code();
  const FetchField& field = *FieldAt(code, op.offset);
  const FilterPattern& pattern = code_.patterns[op.index];
  const FetchOp& store = code.ops[field.end - 1];
  if (store.code == FetchOpcode::kStoreLiteral) return MatchLiteral(store, pattern, if_true);
  if (IsPlainText(pattern, probe_)) return CompareWhole(field, pattern.text, if_true, if_false);
  MatchPattern(field, pattern, if_true, if_false);
}

// Known already. In the kernel's rules it cannot be read (FetchEmitter::StoreLiteral).
void FilterEmitter::MatchLiteral(const FetchOp& store, const FilterPattern& pattern,
                                 Label& if_true) {
  const bool unreadable = probe_.limits.kernel_string_rules;
  const std::string& text = probe_.program->code().literals[store.index];
  if (lang::Matches(pattern, unreadable ? "" : text, unreadable)) a_.jmp(if_true, kNear);
}

void FilterEmitter::MatchPattern(const FetchField& field, const FilterPattern& pattern,
                                 Label& if_true, Label& if_false) {
  const uint32_t word =
      a_.frame().length_word(*FetchEmitter::LengthWordOf(probe_.program->code(), field));
  a_.cmp(dword[rsp + word], -1);
  a_.je(lang::Matches(pattern, {}, /*unreadable=*/true) ? if_true : if_false, kNear);
  fetch_.LoadAddress(field, if_false);
  a_.mov(rsi, rax);
  a_.mov(edx, dword[rsp + word]);
  a_.and_(edx, ~lang::kTruncatedBit);
  a_.add(rdx, rsi);
  PatternCode(a_, pattern).Emit(if_true, if_false);
}

// Byte for byte, so that no load touches memory behind a difference. A string that cannot be read
// as far as that equals nothing.
void FilterEmitter::CompareWhole(const FetchField& field, const std::string& text, Label& if_true,
                                 Label& if_false) {
  fetch_.LoadAddress(field, if_false);
  for (size_t i = 0; i <= text.size(); ++i) {
    a_.MayFault(if_false);
    a_.cmp(byte[kValue + i], static_cast<uint8_t>(text.c_str()[i]));
    if (i < text.size()) a_.jne(if_false, kNear);
  }
  a_.je(if_true, kNear);
}

}  // namespace probed::detour

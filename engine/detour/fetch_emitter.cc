#include "engine/detour/fetch_emitter.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/detour/body_registers.h"
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
      strings_(assembler, payload_, max_string_, probe.limits.kernel_string_rules) {}

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

void FetchEmitter::Measure() {
  a_.xor_(kTotal.cvt32(), kTotal.cvt32());
  strings_.LoadConstants();
  EmitFields(Pass::kMeasure);
}

void FetchEmitter::Store() {
  StoreInitial();
  if (HasData(probe_)) {
    strings_.LoadConstants();
    a_.lea(kCursor, ptr[kRecord + (payload_ + fixed_bytes())]);
  }
  EmitFields(Pass::kStore);
}

// The first strings have room on the stack for their length words, the others are searched twice.
void FetchEmitter::EmitFields(Pass pass) {
  uint32_t strings = 0;
  for (const FetchField& field : code_.fields) {
    if (code_.ops[field.end - 1].code == FetchOpcode::kStoreString && strings < kLengthWords) {
      EmitStringField(field, pass, a_.frame().length_word(strings++));
    } else if (pass == Pass::kStore || IsMeasured(field)) {
      EmitField(field, pass);
    }
  }
}

void FetchEmitter::EmitStringField(const FetchField& field, Pass pass, uint32_t length_word) {
  Label leave;
  const FetchOp& store = code_.ops[field.end - 1];
  if (pass == Pass::kMeasure) {
    a_.mov(dword[rsp + length_word], lang::kFaultSlot);
  } else {
    a_.cmp(dword[rsp + length_word], -1);
    a_.je(leave, CodeGenerator::T_NEAR);
  }
  for (uint32_t i = field.begin; i + 1 < field.end; ++i)
    EmitOp(code_.ops[i], pass, leave);
  if (pass == Pass::kMeasure) {
    strings_.Measure(store.offset, length_word);
  } else {
    strings_.CopyMeasured(store.offset, length_word, store.slot);
  }
  a_.L(leave);
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
      return LoadRegister(static_cast<lang::Reg>(op.index));
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

void FetchEmitter::SetLength(const FetchOp& op) {
  const int unused = 64 - 8 * op.size;
  if (unused != 0) {
    a_.shl(rax, unused);
    op.is_signed ? a_.sar(rax, unused) : a_.shr(rax, unused);
  }
  ExtractBits(op);
  a_.mov(a_.Slot(a_.frame().length()), rax);
}

// As the interpreter: in the container's width, shift counts modulo the operand's.
void FetchEmitter::ExtractBits(const FetchOp& op) {
  if (op.shift_left == 0 && op.shift_right == 0) return;
  if (op.size == 8) {
    a_.shl(rax, op.shift_left & 63);
    return a_.shr(rax, op.shift_right & 63);
  }
  a_.shl(eax, op.shift_left & 31);
  if (op.size == 1) a_.movzx(eax, al);
  if (op.size == 2) a_.movzx(eax, ax);
  a_.shr(eax, op.shift_right & 31);
}

void FetchEmitter::StoreNumber(const Xbyak::RegExp& to, uint8_t size) {
  if (size == 1) return a_.mov(byte[to], al);
  if (size == 2) return a_.mov(word[to], ax);
  if (size == 4) return a_.mov(dword[to], eax);
  a_.mov(qword[to], rax);
}

void FetchEmitter::LoadElement(const FetchOp& op, Label& fault) {
  a_.MayFault(fault);
  if (op.size == 1) return a_.movzx(eax, byte[rsi]);
  if (op.size == 2) return a_.movzx(eax, word[rsi]);
  if (op.size == 4) return a_.mov(eax, dword[rsi]);
  a_.mov(rax, qword[rsi]);
}

// Each element by itself: those behind an unreadable page still count.
void FetchEmitter::StoreMemory(const FetchOp& op) {
  Label element, next;
  const auto partly = std::make_shared<Label>();
  const auto got = std::make_shared<Label>();
  const int slot = static_cast<int>(payload_ + op.slot);
  const bool is_array = op.count > 1;
  a_.lea(rsi, ptr[kValue + op.offset]);
  if (is_array) a_.lea(r9, ptr[kRecord + slot]);
  a_.L(element);
  LoadElement(op, op.size == 1 ? next : *partly);
  a_.L(*got);
  ExtractBits(op);
  StoreNumber(is_array ? Xbyak::RegExp(r9) : kRecord + slot, op.size);
  a_.L(next);
  if (is_array) {
    a_.add(rsi, op.size);
    a_.add(r9, op.size);
    a_.mov(rcx, r9);
    a_.sub(rcx, kRecord);
    a_.cmp(rcx, slot + op.size * op.count);
    a_.jb(element);
  }
  if (op.size > 1) a_.Later([=, this] { LoadPartly(op, *partly, *got); });
}

// Of an element that runs into an unreadable page the bytes before it count.
void FetchEmitter::LoadPartly(const FetchOp& op, Label& begin, Label& done) {
  Label more;
  a_.L(begin);
  a_.xor_(eax, eax);
  a_.xor_(ecx, ecx);
  a_.L(more);
  a_.MayFault(done);
  a_.movzx(edx, byte[rsi + rcx]);
  a_.shl(ecx, 3);
  a_.shl(rdx, cl);
  a_.shr(ecx, 3);
  a_.or_(rax, rdx);
  a_.inc(ecx);
  a_.cmp(ecx, op.size);
  a_.jb(more);
  a_.jmp(done, CodeGenerator::T_NEAR);
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

void FetchEmitter::StoreInitial() {
  uint32_t begin = 0;
  std::vector<bool> certain(code_.initial.size());
  for (const FetchField& field : code_.fields) {
    const FetchOp& store = code_.ops[field.end - 1];
    if (!IsCertain(field)) continue;
    std::fill_n(certain.begin() + store.slot, store.size, true);
  }
  while (begin < certain.size()) {
    const auto from = std::find(certain.begin() + begin, certain.end(), false);
    const auto to = std::find(from, certain.end(), true);
    StoreInitial(static_cast<uint32_t>(from - certain.begin()),
                 static_cast<uint32_t>(to - certain.begin()));
    begin = static_cast<uint32_t>(to - certain.begin());
  }
}

void FetchEmitter::StoreInitial(uint32_t begin, uint32_t end) {
  while (begin < end) {
    const uint32_t repeated = StoreRepeated(begin, end);
    begin += repeated;
    if (repeated != 0) continue;
    const uint8_t size = end - begin >= 8 ? 8 : end - begin >= 4 ? 4 : end - begin >= 2 ? 2 : 1;
    uint64_t word = 0;
    std::memcpy(&word, code_.initial.data() + begin, size);
    a_.mov(rax, word);
    StoreNumber(kRecord + (payload_ + begin), size);
    begin += size;
  }
}

// A long run of equal words, as a loop. Returns how many bytes it stores.
uint32_t FetchEmitter::StoreRepeated(uint32_t begin, uint32_t end) {
  constexpr uint32_t kWorthALoop = 8;
  const std::byte* const first = code_.initial.data() + begin;
  uint32_t count = 0;
  while (begin + 8 * (count + 1) <= end && std::memcmp(first, first + 8 * count, 8) == 0)
    ++count;
  if (count < kWorthALoop) return 0;
  uint64_t word = 0;
  std::memcpy(&word, first, sizeof(word));
  Label more;
  a_.mov(rax, word);
  a_.lea(rsi, ptr[kRecord + (payload_ + begin)]);
  a_.mov(ecx, count);
  a_.L(more);
  a_.mov(ptr[rsi], rax);
  a_.add(rsi, 8);
  a_.dec(ecx);
  a_.jnz(more);
  return 8 * count;
}

void FetchEmitter::EmitStringArray(const FetchOp& op, Pass pass, Label& leave) {
  const Xbyak::Address base = a_.Slot(a_.frame().array_base());
  const Xbyak::Address index = a_.Slot(a_.frame().array_index());
  Label next;
  a_.lea(rax, ptr[kValue + op.offset]);
  a_.mov(base, rax);
  a_.mov(index, 0);
  a_.L(next);
  a_.mov(rcx, index);
  a_.mov(rax, base);
  a_.MayFault(leave);
  a_.mov(kValue, ptr[rax + rcx * 8]);
  if (pass == Pass::kMeasure) {
    strings_.Measure(0);
  } else {
    strings_.Copy(0, {.offset = op.slot, .in_array = true});
  }
  a_.inc(index);
  a_.cmp(index, op.count);
  a_.jb(next);
}

// rcx = the length asked for, within bounds.
void FetchEmitter::ClampLength() {
  a_.mov(rcx, a_.Slot(a_.frame().length()));
  a_.xor_(edx, edx);
  a_.test(rcx, rcx);
  a_.cmovs(rcx, rdx);
  a_.mov(edx, max_string_);
  a_.cmp(rcx, rdx);
  a_.cmova(rcx, rdx);
}

// All or nothing: one load in each page tells.
void FetchEmitter::MeasureBytes(const FetchOp& op, Label& leave) {
  Label page, readable;
  a_.lea(rsi, ptr[kValue + op.offset]);
  ClampLength();
  a_.test(rcx, rcx);
  a_.jz(readable);
  a_.lea(rdx, ptr[rsi + rcx - 1]);
  a_.L(page);
  a_.MayFault(leave);
  a_.movzx(eax, byte[rsi]);
  a_.or_(rsi, 4095);
  a_.inc(rsi);
  a_.cmp(rsi, rdx);
  a_.jbe(page);
  a_.L(readable);
  strings_.Count(rcx);
}

// rdx..: copies rcx bytes from rsi to kCursor.
void FetchEmitter::CopyBytes(Label& fault) {
  Label words, tail, bytes, done;
  a_.L(words);
  a_.sub(rcx, 8);
  a_.jb(tail);
  a_.MayFault(fault);
  a_.mov(rax, ptr[rsi]);
  a_.mov(ptr[kCursor], rax);
  a_.add(rsi, 8);
  a_.add(kCursor, 8);
  a_.jmp(words);
  a_.L(tail);
  a_.add(ecx, 8);
  a_.jz(done);
  a_.L(bytes);
  a_.MayFault(fault);
  a_.movzx(eax, byte[rsi]);
  a_.mov(byte[kCursor], al);
  a_.inc(rsi);
  a_.inc(kCursor);
  a_.dec(ecx);
  a_.jnz(bytes);
  a_.L(done);
}

// Bytes that changed since they were measured, and no longer fit, are a fault.
void FetchEmitter::StoreBytes(const FetchOp& op) {
  Label fault, done;
  a_.lea(rsi, ptr[kValue + op.offset]);
  ClampLength();
  a_.mov(rdx, kCursor);
  a_.lea(rax, ptr[kCursor + rcx]);
  a_.cmp(rax, a_.Slot(a_.frame().limit()));
  a_.ja(fault);
  CopyBytes(fault);
  a_.xor_(ecx, ecx);
  a_.cmp(a_.Slot(a_.frame().length()), max_string_);
  a_.setg(cl);
  a_.shl(ecx, 31);
  strings_.StoreSlot({.offset = op.slot});
  a_.jmp(done);
  a_.L(fault);
  a_.mov(kCursor, rdx);
  a_.L(done);
}

// On uprobes the kernel reads the text as a user address, which always faults.
void FetchEmitter::StoreLiteral(const FetchOp& op, Label& leave) {
  if (probe_.limits.kernel_string_rules) return;
  const std::string& text = code_.literals[op.index];
  const auto size = static_cast<uint32_t>(text.size());
  a_.lea(rax, ptr[kCursor + size]);
  a_.cmp(rax, a_.Slot(a_.frame().limit()));
  a_.ja(leave, CodeGenerator::T_NEAR);
  a_.mov(rdx, kCursor);
  for (uint32_t done = 0; done < size; done += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + done, std::min<size_t>(8, size - done));
    a_.mov(rax, word);
    a_.mov(ptr[kCursor + done], rax);
  }
  a_.add(kCursor, size);
  a_.xor_(ecx, ecx);
  strings_.StoreSlot({.offset = op.slot});
}

}  // namespace probed::detour

#include <algorithm>
#include <cstring>

#include "engine/lang/calling_convention.h"
#include "engine/lang/fetch_code.h"
#include "engine/lang/fetch_program.h"
#include "engine/lang/payload.h"

namespace probed::lang {
namespace {

constexpr size_t kFirstStringRead = 256;  // most strings end in the first read
constexpr size_t kMaxStringRead = 64u << 10;
constexpr size_t kShortStrings = 48;  // room in a record for what most strings add up to

// Shift counts are taken modulo the operand's size, as the processor does for the kernel.
uint64_t ExtractBits(uint64_t container, const FetchOp& op) {
  if (op.shift_left == 0 && op.shift_right == 0) return container;
  const unsigned bits = 8u * op.size;
  const unsigned modulus = bits == 64 ? 63 : 31;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const uint64_t shifted = (container << (op.shift_left & modulus)) & mask;
  return shifted >> (op.shift_right & modulus);
}

class Interpreter {
 public:
  Interpreter(const FetchCode& code, const FetchLimits& limits, FetchContext& context,
              std::vector<std::byte>& payload)
      : code_(code),
        kernel_rules_(limits.kernel_string_rules),
        max_string_(LongestString(limits)),
        context_(context),
        payload_(payload) {}

  FetchOutcome Run();

 private:
  void RunField(const FetchField& field);
  bool Produce(const FetchOp& op);  // value = ...; false: leave the field
  void Store(const FetchOp& op);
  uint64_t AddressOf(const FetchOp& op) const {
    return value_ + static_cast<uint64_t>(int64_t{op.offset});
  }
  uint64_t CapturedArgument(uint16_t number) const;
  bool ReadVector(uint16_t number);
  bool ReadWord(uint64_t address, uint64_t& word);
  void SetLength(const FetchOp& op);
  void StoreNumber(uint32_t slot, uint64_t number, const FetchOp& op);
  void StoreMemory(const FetchOp& op);
  void StoreElement(const FetchOp& op, size_t index, const std::byte* bytes);
  void StoreString(uint32_t slot, uint64_t address);
  void StoreLongString(uint32_t slot, uint64_t address, size_t start);
  void StoreStringArray(const FetchOp& op);
  void StoreBytes(const FetchOp& op);
  void StoreText(uint32_t slot, std::string_view text);
  void SetSlot(uint32_t slot, size_t start, bool truncated);

  const FetchCode& code_;
  const bool kernel_rules_;
  const uint32_t max_string_;
  FetchContext& context_;
  std::vector<std::byte>& payload_;
  uint64_t value_ = 0;
  int64_t length_ = 0;
  size_t terminators_ = 0;  // the kernel stores a NUL after each string
};

bool Interpreter::ReadWord(uint64_t address, uint64_t& word) {
  return context_.ReadMemory(address, std::as_writable_bytes(std::span(&word, 1))) == sizeof(word);
}

uint64_t Interpreter::CapturedArgument(uint16_t number) const {
  const auto captured = context_.entry_arguments();
  return number <= captured.size() ? captured[number - 1u] : 0;
}

bool Interpreter::ReadVector(uint16_t number) {
  VectorRegister vector;
  if (!context_.ReadVector(number, vector)) return false;
  std::memcpy(&value_, vector.data(), sizeof(value_));
  return true;
}

void Interpreter::SetLength(const FetchOp& op) {
  const unsigned unused = 64u - 8u * op.size;
  const uint64_t top = value_ << unused;
  const uint64_t wide =
      op.is_signed ? static_cast<uint64_t>(static_cast<int64_t>(top) >> unused) : top >> unused;
  length_ = static_cast<int64_t>(ExtractBits(wide, op));
}

void Interpreter::StoreNumber(uint32_t slot, uint64_t number, const FetchOp& op) {
  const uint64_t bits = ExtractBits(number, op);
  std::memcpy(payload_.data() + slot, &bits, op.size);
}

void Interpreter::StoreElement(const FetchOp& op, size_t index, const std::byte* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes, op.size);
  StoreNumber(op.slot + static_cast<uint32_t>(index) * op.size, number, op);
}

// One read for all elements. The kernel reads them one by one, so those behind an unreadable page
// still count, and of an element that runs into one the readable bytes are kept.
void Interpreter::StoreMemory(const FetchOp& op) {
  std::byte bytes[64 * sizeof(uint64_t)];
  const uint64_t address = AddressOf(op);
  const size_t got = context_.ReadMemory(address, {bytes, size_t{op.size} * op.count});
  const size_t complete = got / op.size;
  for (size_t i = 0; i < complete; ++i)
    StoreElement(op, i, bytes + i * op.size);
  for (size_t i = complete; i < op.count; ++i) {
    std::byte element[sizeof(uint64_t)] = {};
    context_.ReadMemory(address + i * op.size, {element, op.size});
    StoreElement(op, i, element);
  }
}

void Interpreter::SetSlot(uint32_t slot, size_t start, bool truncated) {
  auto length = static_cast<uint32_t>(payload_.size() - start);
  if (truncated) length |= kTruncatedBit;
  const uint32_t words[2] = {static_cast<uint32_t>(start), length};
  std::memcpy(payload_.data() + slot, words, sizeof(words));
  ++terminators_;
}

// Appends up to the NUL. Memory that ends before it, and in the kernel's rules a string that is too
// long, leave the slot at its fault.
void Interpreter::StoreString(uint32_t slot, uint64_t address) {
  // Not into the payload, which would grow for a whole read and be cut again.
  std::byte first[kFirstStringRead];
  const size_t wanted_first = std::min<size_t>(kFirstStringRead, max_string_ + 1);
  const size_t got_first = context_.ReadMemory(address, {first, wanted_first});
  const size_t start = payload_.size();
  if (const void* nul = std::memchr(first, 0, got_first)) {
    payload_.insert(payload_.end(), std::cbegin(first), static_cast<const std::byte*>(nul));
    return SetSlot(slot, start, false);
  }
  if (got_first < wanted_first) return;
  payload_.insert(payload_.end(), first, first + got_first);
  StoreLongString(slot, address, start);
}

// Goes on behind what is in the payload from `start` on.
void Interpreter::StoreLongString(uint32_t slot, uint64_t address, size_t start) {
  size_t done = payload_.size() - start;
  size_t chunk = kFirstStringRead * 4;
  while (done <= max_string_) {
    const size_t wanted = std::min(chunk, max_string_ + 1 - done);
    payload_.resize(start + done + wanted);
    std::byte* const bytes = payload_.data() + start + done;
    const size_t got = context_.ReadMemory(address + done, {bytes, wanted});
    if (const void* nul = std::memchr(bytes, 0, got)) {
      payload_.resize(start + done + (static_cast<const std::byte*>(nul) - bytes));
      return SetSlot(slot, start, false);
    }
    done += got;
    if (got < wanted) break;
    chunk = std::min(chunk * 4, kMaxStringRead);
  }
  if (done <= max_string_ || kernel_rules_) return payload_.resize(start);
  payload_.resize(start + max_string_);
  SetSlot(slot, start, true);
}

void Interpreter::StoreStringArray(const FetchOp& op) {
  uint64_t pointers[64];
  const uint64_t address = AddressOf(op);
  const auto bytes = std::as_writable_bytes(std::span(pointers, op.count));
  const size_t got = context_.ReadMemory(address, bytes) / sizeof(uint64_t);
  for (size_t i = 0; i < got; ++i) {
    StoreString(op.slot + static_cast<uint32_t>(8 * i), pointers[i]);
  }
}

void Interpreter::StoreBytes(const FetchOp& op) {
  const size_t start = payload_.size();
  const uint64_t address = AddressOf(op);
  const auto asked = static_cast<uint64_t>(std::max<int64_t>(length_, 0));
  const size_t wanted = std::min<uint64_t>(asked, max_string_);
  payload_.resize(start + wanted);
  if (wanted > 0 && context_.ReadMemory(address, {payload_.data() + start, wanted}) != wanted) {
    return payload_.resize(start);
  }
  SetSlot(op.slot, start, wanted < asked);
}

void Interpreter::StoreText(uint32_t slot, std::string_view text) {
  const size_t start = payload_.size();
  const auto bytes = std::as_bytes(std::span(text));
  payload_.insert(payload_.end(), bytes.begin(), bytes.end());
  SetSlot(slot, start, false);
}

bool Interpreter::Produce(const FetchOp& op) {
  switch (op.code) {
    case FetchOpcode::kRegister:
      value_ = context_.registers().values[op.index];
      return true;
    case FetchOpcode::kStackSlot:
      if (!ReadWord(context_.registers()[Reg::kSp] + 8 * op.immediate, value_)) value_ = 0;
      return true;
    case FetchOpcode::kImmediate:
      value_ = op.immediate;
      return true;
    case FetchOpcode::kFileOffset:
      value_ = context_.file_base() + op.immediate;
      return true;
    case FetchOpcode::kArgument:
      value_ = CapturedArgument(op.index);
      return true;
    case FetchOpcode::kVector:
      return ReadVector(op.index);
    default:
      return ReadWord(AddressOf(op), value_);  // kLoad
  }
}

void Interpreter::Store(const FetchOp& op) {
  switch (op.code) {
    case FetchOpcode::kSetLength:
      return SetLength(op);
    case FetchOpcode::kStoreValue:
      return StoreNumber(op.slot, value_, op);
    case FetchOpcode::kStoreMemory:
      return StoreMemory(op);
    case FetchOpcode::kStoreString:
      return StoreString(op.slot, AddressOf(op));
    case FetchOpcode::kStoreStringArray:
      return StoreStringArray(op);
    case FetchOpcode::kStoreBytes:
      return StoreBytes(op);
    case FetchOpcode::kStoreComm:
      return StoreText(op.slot, context_.comm());
    default:  // kStoreLiteral
      // On uprobes the kernel reads the text as a user address, which always faults (3.3).
      if (!kernel_rules_) StoreText(op.slot, code_.literals[op.index]);
  }
}

// Runs one field; a load that fails leaves it as it was initialised.
void Interpreter::RunField(const FetchField& field) {
  for (uint32_t i = field.begin; i < field.end; ++i) {
    const FetchOp& op = code_.ops[i];
    if (op.code >= FetchOpcode::kSetLength) {
      Store(op);
    } else if (!Produce(op)) {
      return;
    }
  }
}

FetchOutcome Interpreter::Run() {
  payload_.reserve(code_.initial.size() + kShortStrings);
  payload_.assign(code_.initial.begin(), code_.initial.end());
  for (const FetchField& field : code_.fields)
    RunField(field);
  const size_t string_bytes = payload_.size() - code_.initial.size() + terminators_;
  const bool too_big = code_.kernel_fixed_size + string_bytes > kKernelMaxRecord;
  return kernel_rules_ && too_big ? FetchOutcome::kDropped : FetchOutcome::kRecorded;
}

}  // namespace

FetchOutcome Fetch(const FetchProgram& program, const FetchLimits& limits, FetchContext& context,
                   std::vector<std::byte>& payload) {
  return Interpreter(program.code(), limits, context, payload).Run();
}

std::vector<uint64_t> CaptureEntryArguments(FetchContext& context, uint32_t count) {
  std::vector<uint64_t> arguments(count, 0);
  const RegisterFile& registers = context.registers();
  const size_t in_registers = std::min<size_t>(count, kArgumentRegisters.size());
  for (size_t i = 0; i < in_registers; ++i)
    arguments[i] = registers[kArgumentRegisters[i]];
  if (count > in_registers) {
    const auto on_stack = std::as_writable_bytes(std::span(arguments).subspan(in_registers));
    const size_t got = context.ReadMemory(registers[Reg::kSp] + 8, on_stack);
    std::fill(on_stack.begin() + static_cast<ptrdiff_t>(got / 8 * 8), on_stack.end(), std::byte{0});
  }
  return arguments;
}

}  // namespace probed::lang

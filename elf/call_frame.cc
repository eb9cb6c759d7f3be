#include "elf/call_frame.h"

#include <optional>
#include <string_view>
#include <vector>

#include "elf/byte_reader.h"
#include "elf/headers.h"
#include "elf/pointer_encoding.h"

namespace probed::elf {
namespace {

// DW_CFA_*: table 7.23, and one of GNU's.
enum Opcode : uint8_t {
  kAdvance = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kAdvance1 = 0x02,
  kAdvance2 = 0x03,
  kAdvance4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSigned = 0x11,
  kDefCfaSigned = 0x12,
  kDefCfaOffsetSigned = 0x13,
  kValExpression = 0x16,
  kArgsSize = 0x2e,
};

constexpr uint64_t kLongestBody = 1 << 16;
constexpr size_t kMostKept = 32;  // DW_CFA_remember_state
// x86-64 psABI, "DWARF Register Number Mapping".
constexpr uint64_t kRbp = 6, kRsp = 7, kReturnAddress = 16;

int64_t TakeSleb128(ByteReader& reader) {
  size_t start = reader.position();
  uint64_t value = reader.TakeUleb128();
  size_t bits = (reader.position() - start) * 7;
  if (bits > 0 && bits < 64 && (value >> (bits - 1) & 1) != 0) value -= uint64_t{1} << bits;
  return static_cast<int64_t>(value);
}

struct Row {
  // The canonical frame address; nothing: an expression.
  std::optional<uint64_t> base_register;
  int64_t base_offset = 0;
  // From the frame address; nothing: it is kept otherwise, or there is none.
  std::optional<int64_t> return_address;

  ReturnAddress Place() const {
    if (!return_address) return ReturnAddress::kElsewhere;
    if (base_register == kRbp) return ReturnAddress::kElsewhere;
    if (base_register != kRsp) return ReturnAddress::kUnknown;
    return base_offset + *return_address == 0 ? ReturnAddress::kOnTop : ReturnAddress::kElsewhere;
  }
};

struct Cie {
  uint64_t code_alignment = 1;
  int64_t data_alignment = 1;
  uint8_t encoding = 0;
  bool is_signal_frame = false;
  Row initial;
};

// Call frame instructions up to the first that holds behind a given distance.
class Program {
 public:
  Program(const Cie& cie, uint64_t until) : cie_(cie), row_(cie.initial), until_(until) {}

  // False: something that is not understood.
  bool Run(ByteReader reader) {
    while (reader.left() > 0 && at_ <= until_) {
      if (!Step(reader) || !reader.ok()) return false;
    }
    return true;
  }
  const Row& row() const { return row_; }

 private:
  bool Step(ByteReader& reader) {
    auto opcode = reader.Take<uint8_t>();
    uint64_t operand = opcode & 0x3f;
    switch (opcode & 0xc0) {
      case kAdvance:
        return Advance(operand);
      case kOffset:
        return SetOffset(operand, static_cast<int64_t>(reader.TakeUleb128()));
      case kRestore:
        return Restore(operand);
      default:
        return StepExtended(opcode, reader);
    }
  }

  bool StepExtended(uint8_t opcode, ByteReader& reader) {
    switch (opcode) {
      case kNop:
        return true;
      case kAdvance1:
        return Advance(reader.Take<uint8_t>());
      case kAdvance2:
        return Advance(reader.Take<uint16_t>());
      case kAdvance4:
        return Advance(reader.Take<uint32_t>());
      case kRememberState:
        kept_.push_back(row_);
        return kept_.size() <= kMostKept;
      case kRestoreState:
        if (kept_.empty()) return false;
        row_ = kept_.back();
        kept_.pop_back();
        return true;
      case kArgsSize:
        reader.TakeUleb128();
        return true;
      default:
        return StepFrameAddress(opcode, reader) || StepRegister(opcode, reader);
    }
  }

  bool StepFrameAddress(uint8_t opcode, ByteReader& reader) {
    switch (opcode) {
      case kDefCfa:
        row_.base_register = reader.TakeUleb128();
        row_.base_offset = static_cast<int64_t>(reader.TakeUleb128());
        return true;
      case kDefCfaSigned:
        row_.base_register = reader.TakeUleb128();
        row_.base_offset = TakeSleb128(reader) * cie_.data_alignment;
        return true;
      case kDefCfaRegister:
        row_.base_register = reader.TakeUleb128();
        return true;
      case kDefCfaOffset:
        row_.base_offset = static_cast<int64_t>(reader.TakeUleb128());
        return true;
      case kDefCfaOffsetSigned:
        row_.base_offset = TakeSleb128(reader) * cie_.data_alignment;
        return true;
      case kDefCfaExpression:
        row_.base_register.reset();
        reader.Skip(reader.TakeUleb128());
        return true;
      default:
        return false;
    }
  }

  bool StepRegister(uint8_t opcode, ByteReader& reader) {
    uint64_t which = reader.TakeUleb128();
    switch (opcode) {
      case kOffsetExtended:
        return SetOffset(which, static_cast<int64_t>(reader.TakeUleb128()));
      case kOffsetExtendedSigned:
        return SetOffset(which, TakeSleb128(reader));
      case kRestoreExtended:
        return Restore(which);
      case kUndefined:
      case kSameValue:
        return SetElsewhere(which);
      case kRegister:
        reader.TakeUleb128();
        return SetElsewhere(which);
      case kExpression:
      case kValExpression:
        reader.Skip(reader.TakeUleb128());
        return SetElsewhere(which);
      default:
        return false;
    }
  }

  bool Advance(uint64_t distance) {
    at_ += distance * cie_.code_alignment;
    return true;
  }
  bool SetOffset(uint64_t which, int64_t factor) {
    if (which == kReturnAddress) row_.return_address = factor * cie_.data_alignment;
    return true;
  }
  bool SetElsewhere(uint64_t which) {
    if (which == kReturnAddress) row_.return_address.reset();
    return true;
  }
  bool Restore(uint64_t which) {
    if (which == kReturnAddress) row_.return_address = cie_.initial.return_address;
    return true;
  }

  const Cie& cie_;
  Row row_;
  std::vector<Row> kept_;
  uint64_t at_ = 0, until_;
};

// What stands behind an entry's length.
std::vector<uint8_t> ReadBody(const Image& image, std::span<const Segment> segments,
                              LinkAddr start) {
  constexpr uint64_t kLength = sizeof(uint32_t);
  if (start.value < kLength) return {};
  FileRange range = RangeAt(segments, {start.value - kLength}, kLongestBody);
  uint32_t length = 0;
  if (range.size < kLength || !image.ReadInto(range.offset, &length, kLength)) return {};
  if (length > range.size - kLength) return {};
  return image.Read(range.offset + kLength, length);
}

std::optional<Cie> ReadCie(const std::vector<uint8_t>& body) {
  ByteReader reader(body);
  Cie cie;
  if (reader.Take<uint32_t>() != 0) return std::nullopt;
  auto version = reader.Take<uint8_t>();
  std::string_view augmentation = reader.TakeString();
  cie.code_alignment = reader.TakeUleb128();
  cie.data_alignment = TakeSleb128(reader);
  uint64_t return_register = version == 1 ? reader.Take<uint8_t>() : reader.TakeUleb128();
  if (return_register != kReturnAddress || !augmentation.starts_with('z')) return std::nullopt;
  uint64_t size = reader.TakeUleb128();
  ByteReader data = reader;
  for (char letter : augmentation.substr(1)) {
    if (letter == 'R') cie.encoding = data.Take<uint8_t>();
    if (letter == 'L') data.Skip(1);
    if (letter == 'P') TakeEncodedValue(&data, data.Take<uint8_t>());
    if (letter == 'S') cie.is_signal_frame = true;
  }
  reader.Skip(size);
  Program program(cie, 0);
  if (!data.ok() || !reader.ok() || !program.Run(reader)) return std::nullopt;
  cie.initial = program.row();
  return cie;
}

}  // namespace

ReturnAddress FindReturnAddress(const Image& image, std::span<const Segment> segments,
                                const Frame& frame, LinkAddr address) {
  const std::vector<uint8_t> body = ReadBody(image, segments, frame.entry);
  ByteReader reader(body);
  // How far back from here the entry's CIE begins, with its length.
  auto distance = reader.Take<uint32_t>();
  if (!reader.ok() || distance > frame.entry.value) return ReturnAddress::kUnknown;
  auto cie = ReadCie(ReadBody(image, segments, {frame.entry.value - distance + sizeof(uint32_t)}));
  if (!cie) return ReturnAddress::kUnknown;
  if (cie->is_signal_frame) return ReturnAddress::kElsewhere;
  TakeEncodedValue(&reader, cie->encoding);  // start and size
  TakeEncodedValue(&reader, cie->encoding);
  reader.Skip(reader.TakeUleb128());  // augmentation data
  Program program(*cie, address - frame.start);
  if (!reader.ok() || !program.Run(reader)) return ReturnAddress::kUnknown;
  return program.row().Place();
}

}  // namespace probed::elf

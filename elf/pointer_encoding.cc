#include "elf/pointer_encoding.h"

namespace probed::elf {
namespace {

enum Format : uint8_t {
  kAbsolute = 0x00,
  kUleb128 = 0x01,
  kUdata2 = 0x02,
  kUdata4 = 0x03,
  kUdata8 = 0x04,
  kSdata2 = 0x0a,
  kSdata4 = 0x0b,
  kSdata8 = 0x0c,
};

enum Application : uint8_t { kDirect = 0x00, kPcRelative = 0x10, kDataRelative = 0x30 };

constexpr uint8_t kFormatMask = 0x0f;
constexpr uint8_t kApplicationMask = 0xf0;  // with the indirect bit, 0x80

template <class T>
uint64_t TakeSigned(ByteReader* reader) {
  return static_cast<uint64_t>(static_cast<int64_t>(reader->Take<T>()));
}

std::optional<uint64_t> TakeFormat(ByteReader* reader, uint8_t format) {
  switch (format) {
    case kAbsolute:
    case kUdata8:
    case kSdata8:
      return reader->Take<uint64_t>();
    case kUleb128:
      return reader->TakeUleb128();
    case kUdata2:
      return reader->Take<uint16_t>();
    case kUdata4:
      return reader->Take<uint32_t>();
    case kSdata2:
      return TakeSigned<int16_t>(reader);
    case kSdata4:
      return TakeSigned<int32_t>(reader);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<uint64_t> TakeEncodedValue(ByteReader* reader, uint8_t encoding) {
  auto value = TakeFormat(reader, encoding & kFormatMask);
  return reader->ok() ? value : std::nullopt;
}

std::optional<uint64_t> TakePointer(ByteReader* reader, uint8_t encoding, const PointerBase& base) {
  uint64_t here = base.section.value + reader->position();
  auto value = TakeEncodedValue(reader, encoding);
  if (!value) return std::nullopt;
  switch (encoding & kApplicationMask) {
    case kDirect:
      return *value;
    case kPcRelative:
      return here + *value;
    case kDataRelative:
      return base.data.value + *value;
    default:
      return std::nullopt;
  }
}

}  // namespace probed::elf

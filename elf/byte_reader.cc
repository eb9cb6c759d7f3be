#include "elf/byte_reader.h"

namespace probed::elf {

std::span<const uint8_t> ByteReader::TakeBytes(size_t count) {
  if (!Reserve(count)) return {};
  std::span<const uint8_t> taken = bytes_.subspan(position_, count);
  position_ += count;
  return taken;
}

std::string_view ByteReader::TakeString() {
  if (!ok_) return {};
  const auto* start = reinterpret_cast<const char*>(bytes_.data()) + position_;
  size_t length = ::strnlen(start, left());
  if (!Reserve(length + 1)) return {};
  position_ += length + 1;
  return {start, length};
}

uint64_t ByteReader::TakeUleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    auto byte = Take<uint8_t>();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  ok_ = false;
  return 0;
}

int64_t ByteReader::TakeSleb128() {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64;) {
    auto byte = Take<uint8_t>();
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) != 0) continue;
    if ((byte & 0x40) != 0 && shift < 64) value |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(value);
  }
  ok_ = false;
  return 0;
}

std::string_view StringAt(std::span<const uint8_t> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  return ByteReader(table, offset).TakeString();
}

}  // namespace probed::elf

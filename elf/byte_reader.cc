#include "elf/byte_reader.h"

#include <algorithm>

namespace probed::elf {

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

std::string_view StringAt(std::span<const uint8_t> table, uint64_t offset) {
  if (offset >= table.size()) return {};
  const auto* start = reinterpret_cast<const char*>(table.data()) + offset;
  return {start, ::strnlen(start, std::min(table.size() - offset, kMaxString))};
}

}  // namespace probed::elf

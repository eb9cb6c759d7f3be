#pragma once
// Forward reading of hostile bytes: every step is checked, and a failed step leaves the reader
// failed so that a caller may check once at the end. Does not own the bytes. Little-endian, like
// the files. For what libelf has no records for: hash tables, unwind tables, .gopclntab,
// .gnu_debuglink.

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace probed::elf {

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes, size_t position = 0)
      : bytes_(bytes), position_(position), ok_(position <= bytes.size()) {}

  bool ok() const { return ok_; }
  size_t position() const { return position_; }
  size_t left() const { return ok_ ? bytes_.size() - position_ : 0; }

  // A zero T when too few bytes are left.
  template <class T>
  T Take() {
    T value{};
    if (!Reserve(sizeof value)) return value;
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }

  // Up to and without its NUL; failed when there is none.
  std::string_view TakeString();
  // Failed when longer than 64 bits need.
  uint64_t TakeUleb128();
  void Skip(size_t count) {
    if (Reserve(count)) position_ += count;
  }

 private:
  bool Reserve(size_t count) { return ok_ = left() >= count; }

  std::span<const uint8_t> bytes_;
  size_t position_;
  bool ok_;
};

// The string at `offset` of a string table, cut after kMaxString bytes; empty when outside. Unlike
// elf_strptr it needs no section, and names that share a long tail cannot make it slow.
constexpr size_t kMaxString = 64 << 10;
std::string_view StringAt(std::span<const uint8_t> table, uint64_t offset);

}  // namespace probed::elf

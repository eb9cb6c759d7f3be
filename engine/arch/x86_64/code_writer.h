#pragma once
// Assembles the few instructions that copies are made of. Private to this folder.

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace probed::arch {

constexpr bool FitsInt32(int64_t value) {
  return value == static_cast<int32_t>(value);
}

// Bytes that will stand at a known address.
class CodeWriter {
 public:
  static constexpr uint8_t kPushLength = 6;

  explicit CodeWriter(uint64_t address) : address_(address) {}

  uint64_t here() const { return address_ + code_.size(); }
  uint32_t size() const { return static_cast<uint32_t>(code_.size()); }
  std::vector<uint8_t> Take() { return std::move(code_); }

  void Bytes(std::span<const uint8_t> bytes) {
    code_.insert(code_.end(), bytes.begin(), bytes.end());
  }
  void Bytes(std::initializer_list<uint8_t> bytes) {
    code_.insert(code_.end(), bytes.begin(), bytes.end());
  }
  template <class Integer>
  void Little(Integer value) {
    uint8_t bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    Bytes(bytes);
  }

  // `push distance(%rip)`: kPushLength bytes that change no register but the stack pointer.
  void Push(uint8_t distance) {
    Bytes({0xff, 0x35});
    Little(int32_t{distance});
  }

  // `jmp target`, or `jmp *(%rip)` and the target behind it when the distance has no 32 bits.
  void Jump(uint64_t target) {
    int64_t distance = static_cast<int64_t>(target - (here() + 5));
    if (FitsInt32(distance)) {
      Bytes({0xe9});
      Little(static_cast<int32_t>(distance));
    } else {
      Bytes({0xff, 0x25, 0, 0, 0, 0});
      Little(target);
    }
  }

 private:
  uint64_t address_;
  std::vector<uint8_t> code_;
};

}  // namespace probed::arch

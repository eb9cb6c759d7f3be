#include "tests/arch/hex.h"

#include <charconv>

namespace probed::arch {

std::vector<uint8_t> Hex(std::string_view text) {
  std::vector<uint8_t> bytes;
  while (text.size() >= 2) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    uint8_t byte = 0;
    if (std::from_chars(text.data(), text.data() + 2, byte, 16).ec != std::errc()) break;
    bytes.push_back(byte);
    text.remove_prefix(2);
  }
  return bytes;
}

std::string ToHex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    if (!text.empty()) text += ' ';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace probed::arch

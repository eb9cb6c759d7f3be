#include "engine/lang/number.h"

#include <cerrno>
#include <limits>

#include "engine/lang/ctype.h"

namespace probed::lang {
namespace {

struct Digits {
  uint64_t value = 0;
  size_t length = 0;  // prefix included
  size_t count = 0;   // digits only
  bool overflow = false;
};

bool HasHexPrefix(std::string_view text) {
  return text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') &&
         IsHexDigit(text[2]);
}

unsigned BaseOf(std::string_view text) {
  if (HasHexPrefix(text)) return 16;
  return text.starts_with('0') ? 8 : 10;
}

unsigned DigitValue(char c) {
  if (IsDigit(c)) return static_cast<unsigned>(c - '0');
  if (IsHexDigit(c)) return static_cast<unsigned>((c | 0x20) - 'a' + 10);
  return std::numeric_limits<unsigned>::max();
}

Digits ReadDigits(std::string_view text, unsigned base) {
  Digits digits;
  if (base == 0) base = BaseOf(text);
  if (base == 16 && HasHexPrefix(text)) digits.length = 2;
  for (; digits.length < text.size(); ++digits.length, ++digits.count) {
    const unsigned digit = DigitValue(text[digits.length]);
    if (digit >= base) break;
    const uint64_t limit = std::numeric_limits<uint64_t>::max();
    if (digits.value > (limit - digit) / base) digits.overflow = true;
    digits.value = digits.value * base + digit;
  }
  return digits;
}

ParsedNumber<uint64_t> ParseMagnitude(std::string_view text, unsigned base) {
  const Digits digits = ReadDigits(text, base);
  if (digits.overflow) return {ERANGE, 0};
  if (digits.count == 0 || digits.length != text.size()) return {EINVAL, 0};
  return {0, digits.value};
}

}  // namespace

ParsedNumber<uint64_t> ParseUnsigned(std::string_view text, unsigned base) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseMagnitude(text, base);
}

ParsedNumber<int64_t> ParseSigned(std::string_view text) {
  constexpr uint64_t kSignBit = uint64_t{1} << 63;
  const bool negative = text.starts_with('-');
  const auto magnitude = negative ? ParseMagnitude(text.substr(1), 0) : ParseUnsigned(text);
  if (magnitude.error_number != 0) return {magnitude.error_number, 0};
  if (negative && magnitude.value > kSignBit) return {ERANGE, 0};
  if (!negative && magnitude.value >= kSignBit) return {ERANGE, 0};
  return {0, static_cast<int64_t>(negative ? 0 - magnitude.value : magnitude.value)};
}

ScannedNumber ScanUnsigned(std::string_view text) {
  const Digits digits = ReadDigits(text, 0);
  return {digits.value, digits.length};
}

}  // namespace probed::lang

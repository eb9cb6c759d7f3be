#pragma once
// Numbers as the kernel reads them: base from the prefix, one optional '+', overflow told apart
// from junk. Pure.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace probed::lang {

template <class T>
struct ParsedNumber {
  int error_number = 0;  // 0, EINVAL or ERANGE
  T value = 0;
};

// The whole of `text`. `base` 0 takes it from the prefix: 0x and a hex digit, 0, or decimal.
ParsedNumber<uint64_t> ParseUnsigned(std::string_view text, unsigned base = 0);
ParsedNumber<int64_t> ParseSigned(std::string_view text);

// The lenient scanner of bitfields: as many digits as there are, wrapping on overflow.
struct ScannedNumber {
  uint64_t value = 0;
  size_t length = 0;  // bytes consumed
};
ScannedNumber ScanUnsigned(std::string_view text);

}  // namespace probed::lang

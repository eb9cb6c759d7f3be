#pragma once
// What a probe event's print fmt says of its arguments' types. The format's declarations only know
// u8 to u64 and s8 to s64: hexadecimal, characters and symbols are told by the conversion
// (kernel/trace/trace_probe.c, __set_print_fmt). Pure.

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/lang/type.h"

namespace probed::kernel {

enum class Conversion : uint8_t { kDecimal, kHex, kChar, kSymbol };

class ProbeConversions {
 public:
  explicit ProbeConversions(std::string_view print_format) : text_(print_format) {}
  // Of the argument's value, or its array's elements. Unknown ones: kDecimal.
  Conversion Of(std::string_view argument) const;

 private:
  std::string text_;
};

// `number`: the type as declared.
lang::BaseType ToBase(Conversion conversion, lang::BaseType number);

}  // namespace probed::kernel

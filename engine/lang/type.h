#pragma once
// The types of fetch arguments: what `:u8`, `:string[2]`, `:b4@0/8` mean.

#include <cstdint>

namespace probed::lang {

enum class BaseType : uint8_t {
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kX8,
  kX16,
  kX32,
  kX64,
  kChar,
  kString,
  kUstring,
  // Extended dialect only.
  kF32,
  kF64,
  kBytes,
};

struct ArgType {
  BaseType base = BaseType::kX64;
  bool is_array = false;  // `type[1]` is an array too: it prints braces
  uint16_t count = 1;     // elements
  uint8_t bit_width = 0;  // bitfield over the unsigned container `base` when not 0
  uint8_t bit_offset = 0;

  bool operator==(const ArgType&) const = default;
};

// Bytes of one element in a record; a string or bytes element is an 8-byte slot (payload.h).
uint32_t ElementSize(BaseType base);
// Bytes of one element in the kernel's record, where a string is a 4-byte __data_loc word.
uint32_t KernelElementSize(BaseType base);
bool IsStringLike(BaseType base);  // kString, kUstring, kBytes: data behind a slot
bool IsSigned(BaseType base);

}  // namespace probed::lang

#pragma once
// The inside of a FetchProgram: a flat list of operations on one value register, which the
// interpreter runs and a code generator may walk. Pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/lang/fetch_program.h"

namespace probed::lang {

inline constexpr uint32_t kKernelMaxString = 4095;  // PATH_MAX with the NUL
inline constexpr uint32_t kKernelMaxRecord = 4072;  // what fits a ring-buffer page
inline constexpr uint32_t kHardMaxString = 1u << 20;

constexpr uint32_t LongestString(const FetchLimits& limits) {
  return limits.kernel_string_rules ? kKernelMaxString
                                    : std::min(limits.max_string, kHardMaxString);
}

enum class FetchOpcode : uint8_t {
  // value = ...
  kRegister,    // register `index`
  kStackSlot,   // 8 bytes at sp + 8 * immediate; 0 when unreadable
  kImmediate,   // immediate
  kFileOffset,  // file base + immediate
  kArgument,    // $arg<index> captured at entry
  kVector,      // low 8 bytes of %xmm<index>; leaves the field when unavailable
  kLoad,        // 8 bytes at value + offset; leaves the field when unreadable
  // From here on operations leave the value alone and cannot fail.
  // length = value, cut to `size` bytes, shifted, and sign-extended when is_signed
  kSetLength,
  // Stores, at `slot` of the payload. An element that cannot be read keeps its initial 0 or fault.
  kStoreValue,        // low `size` bytes of value
  kStoreMemory,       // `count` elements of `size` bytes at value + offset
  kStoreString,       // NUL-terminated bytes at value + offset
  kStoreStringArray,  // `count` pointers to such at value + offset
  kStoreBytes,        // `length` bytes at value + offset
  kStoreComm,
  kStoreLiteral,  // literals[index]
};

struct FetchOp {
  FetchOpcode code = FetchOpcode::kImmediate;
  uint8_t size = 8;
  // A bitfield is the container shifted left, then right; 0 and 0 otherwise.
  uint8_t shift_left = 0;
  uint8_t shift_right = 0;
  bool is_signed = false;
  uint16_t count = 1;
  uint16_t index = 0;
  int32_t offset = 0;
  uint32_t slot = 0;
  uint64_t immediate = 0;
};

// Operations [begin, end) of one field; a failed load goes on at the next field.
struct FetchField {
  uint32_t begin = 0;
  uint32_t end = 0;
};

struct FetchCode {
  std::vector<FetchOp> ops;
  std::vector<FetchField> fields;
  std::vector<std::string> literals;
  std::vector<std::byte> initial;  // the fixed part before anything is fetched
  uint32_t kernel_fixed_size = 0;  // header and fixed part of the kernel's own record
};

class FetchProgram {
 public:
  explicit FetchProgram(FetchCode code) : code_(std::move(code)) {}
  const FetchCode& code() const { return code_; }

 private:
  FetchCode code_;
};

}  // namespace probed::lang

#pragma once
// A compiled event filter: its predicates in the order of the text, each saying where to go on when
// it holds and when it does not. Jumps go forward only, so a run ends. Interpreted at a trap hit; a
// code generator may walk it. Pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace probed::lang {

enum class FilterOperand : uint8_t {
  kField,  // at `offset` of the payload's fixed part: a number, or the slot of a string
  kIp,     // entry: the probed address; return: the real return address
  kFunction,
  kThread,   // common_pid
  kCpu,      // 4 bytes, signed
  kEventId,  // common_type
  kZero,     // common_flags, common_preempt_count
  kComm,     // kText only
};

enum class FilterTest : uint8_t {
  kNever,
  // operand OP value, both extended from `size` bytes to 64 bits as `number` says
  kEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnyBit,
  kInSet,  // sets[index] holds the operand
  kText,   // patterns[index] matches the operand; a string that could not be read is empty
};

enum class FilterNumber : uint8_t { kUnsigned, kSigned, kFloat };

struct FilterOp {
  FilterTest test = FilterTest::kNever;
  FilterOperand operand = FilterOperand::kField;
  FilterNumber number = FilterNumber::kUnsigned;
  uint8_t size = 8;     // bytes of the number: 1, 2, 4 or 8
  uint16_t field = 0;   // kField: index in EventSchema::fields
  uint16_t index = 0;   // kInSet, kText
  uint32_t offset = 0;  // kField
  uint64_t value = 0;   // extended already; kFloat: the bits of a double
  uint32_t if_true = 0;
  uint32_t if_false = 0;
};

// '~' without more than a '*' at either end is a plain search; "\\", '?', '[' and inner '*' are
// not.
struct FilterPattern {
  enum class Kind : uint8_t { kWhole, kStart, kEnd, kAnywhere, kGlob };
  Kind kind = Kind::kWhole;
  std::string text;  // without the outer '*', but for kGlob
  // Shorter strings do not match. A string that could not be read is shorter than any other.
  int32_t min_length = -1;
};

// Bit n: the number n is in the set.
using FilterSet = std::vector<uint64_t>;

struct FilterCode {
  std::vector<FilterOp> ops;  // none: everything passes
  std::vector<FilterPattern> patterns;
  std::vector<FilterSet> sets;

  uint32_t pass() const { return static_cast<uint32_t>(ops.size()); }
  uint32_t drop() const { return pass() + 1; }
};

}  // namespace probed::lang

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/lang/filter.h"
#include "engine/lang/filter_pattern.h"
#include "engine/lang/payload.h"

namespace probed::lang {
namespace {

// The low `size` bytes, extended as the op's value was.
uint64_t Extend(uint64_t value, const FilterOp& op) {
  const unsigned unused = 64 - 8u * op.size;
  if (op.number == FilterNumber::kSigned) {
    return static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
  }
  return value << unused >> unused;
}

double AsDouble(uint64_t bits, const FilterOp& op) {
  if (op.size == sizeof(float)) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

class Run {
 public:
  Run(const FilterCode& code, const FilterHit& hit) : code_(code), hit_(hit) {}

  bool Holds(const FilterOp& op) const {
    switch (op.test) {
      case FilterTest::kNever:
        return false;
      case FilterTest::kText:
        return TextHolds(op);
      case FilterTest::kInSet:
        return IsIn(code_.sets[op.index], Extend(Operand(op), op));
      default:
        return NumberHolds(op);
    }
  }

 private:
  uint64_t Operand(const FilterOp& op) const {
    switch (op.operand) {
      case FilterOperand::kField:
        return Load(op.offset, op.size);
      case FilterOperand::kIp:
        return hit_.ip;
      case FilterOperand::kFunction:
        return hit_.function;
      case FilterOperand::kThread:
        return static_cast<uint64_t>(hit_.tid);
      case FilterOperand::kCpu:
        return hit_.cpu;
      case FilterOperand::kEventId:
        return hit_.event_id;
      case FilterOperand::kZero:
      case FilterOperand::kComm:
        break;
    }
    return 0;
  }

  // 0 for what the payload does not have.
  uint64_t Load(size_t offset, size_t size) const {
    uint64_t value = 0;
    if (offset > hit_.payload.size() || size > hit_.payload.size() - offset) return 0;
    std::memcpy(&value, hit_.payload.data() + offset, size);
    return value;
  }

  bool NumberHolds(const FilterOp& op) const {
    if (op.number == FilterNumber::kFloat) {
      return Compare(op.test, AsDouble(Operand(op), op), std::bit_cast<double>(op.value));
    }
    const uint64_t value = Extend(Operand(op), op);
    if (op.test == FilterTest::kAnyBit) return (value & op.value) != 0;
    if (op.number == FilterNumber::kUnsigned) return Compare(op.test, value, op.value);
    return Compare(op.test, static_cast<int64_t>(value), static_cast<int64_t>(op.value));
  }

  template <class T>
  static bool Compare(FilterTest test, T left, T right) {
    switch (test) {
      case FilterTest::kLess:
        return left < right;
      case FilterTest::kLessEqual:
        return left <= right;
      case FilterTest::kGreater:
        return left > right;
      case FilterTest::kGreaterEqual:
        return left >= right;
      default:
        return left == right;
    }
  }

  static bool IsIn(const FilterSet& set, uint64_t value) {
    return value / 64 < set.size() && (set[value / 64] >> (value % 64) & 1) != 0;
  }

  bool TextHolds(const FilterOp& op) const {
    const FilterPattern& pattern = code_.patterns[op.index];
    if (op.operand == FilterOperand::kComm) return Matches(pattern, hit_.comm, false);
    const uint64_t slot = Load(op.offset, sizeof(uint64_t));
    const auto word = static_cast<uint32_t>(slot >> 32);
    if (word == kFaultSlot) return Matches(pattern, {}, true);
    const size_t start = std::min<size_t>(static_cast<uint32_t>(slot), hit_.payload.size());
    const size_t length = std::min<size_t>(word & ~kTruncatedBit, hit_.payload.size() - start);
    return Matches(pattern, {reinterpret_cast<const char*>(hit_.payload.data()) + start, length},
                   false);
  }

  const FilterCode& code_;
  const FilterHit& hit_;
};

}  // namespace

bool Reads(const FilterCode& code, FilterOperand operand) {
  return std::any_of(code.ops.begin(), code.ops.end(),
                     [operand](const FilterOp& op) { return op.operand == operand; });
}

bool Passes(const FilterCode& code, const FilterHit& hit) {
  const Run run(code, hit);
  size_t at = 0;
  while (at < code.ops.size()) {
    const FilterOp& op = code.ops[at];
    at = run.Holds(op) ? op.if_true : op.if_false;
  }
  return at == code.pass();
}

}  // namespace probed::lang

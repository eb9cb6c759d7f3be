#include "engine/arch/x86_64/flags.h"

#include <bit>

namespace probed::arch {
namespace {

uint64_t FlagIf(bool condition, uint64_t flag) {
  return condition ? flag : 0;
}

bool EvenParity(uint64_t value) {
  return std::popcount(value & 0xff) % 2 == 0;
}

uint64_t ResultFlags(uint64_t result, uint64_t sign_bit) {
  return FlagIf(result == 0, kZeroFlag) | FlagIf((result & sign_bit) != 0, kSignFlag) |
         FlagIf(EvenParity(result), kParityFlag);
}

uint64_t Logic(OperationKind kind, uint64_t left, uint64_t right) {
  if (kind == OperationKind::kOr) return left | right;
  if (kind == OperationKind::kXor) return left ^ right;
  return left & right;
}

ArithmeticResult Add(uint64_t left, uint64_t right, uint64_t mask, uint64_t sign_bit) {
  uint64_t sum = (left + right) & mask;
  bool overflow = (~(left ^ right) & (left ^ sum) & sign_bit) != 0;
  return {sum, ResultFlags(sum, sign_bit) | FlagIf(sum < left, kCarryFlag) |
                   FlagIf(overflow, kOverflowFlag) | ((left ^ right ^ sum) & kAdjustFlag)};
}

ArithmeticResult Subtract(uint64_t left, uint64_t right, uint64_t mask, uint64_t sign_bit) {
  uint64_t difference = (left - right) & mask;
  bool overflow = ((left ^ right) & (left ^ difference) & sign_bit) != 0;
  return {difference, ResultFlags(difference, sign_bit) | FlagIf(left < right, kCarryFlag) |
                          FlagIf(overflow, kOverflowFlag) |
                          ((left ^ right ^ difference) & kAdjustFlag)};
}

}  // namespace

ArithmeticResult ComputeArithmetic(OperationKind kind, uint64_t left, uint64_t right,
                                   uint8_t width) {
  uint64_t mask = width == 8 ? ~uint64_t{0} : 0xffffffff;
  uint64_t sign_bit = width == 8 ? uint64_t{1} << 63 : uint64_t{1} << 31;
  left &= mask;
  right &= mask;
  if (kind == OperationKind::kAdd) return Add(left, right, mask, sign_bit);
  if (kind == OperationKind::kSub || kind == OperationKind::kCompare) {
    return Subtract(left, right, mask, sign_bit);
  }
  // AF is undefined after logic; Intel and AMD processors clear it.
  uint64_t result = Logic(kind, left, right);
  return {result, ResultFlags(result, sign_bit)};
}

bool ConditionHolds(uint8_t condition, uint64_t flags) {
  bool carry = (flags & kCarryFlag) != 0;
  bool zero = (flags & kZeroFlag) != 0;
  bool sign = (flags & kSignFlag) != 0;
  bool overflow = (flags & kOverflowFlag) != 0;
  const bool kinds[] = {overflow,
                        carry,
                        zero,
                        carry || zero,
                        sign,
                        (flags & kParityFlag) != 0,
                        sign != overflow,
                        zero || sign != overflow};
  bool negated = (condition & 1) != 0;
  return kinds[(condition >> 1) & 7] != negated;
}

}  // namespace probed::arch

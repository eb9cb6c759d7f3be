#include "engine/detour/float_interval.h"

#include <bit>
#include <limits>

namespace probed::detour {
namespace {

using lang::FilterTest;

template <class Float>
uint64_t OrderOfInfinity(bool negative) {
  const Float infinity = std::numeric_limits<Float>::infinity();
  if constexpr (sizeof(Float) == sizeof(float)) {
    return OrderOf(std::bit_cast<uint32_t>(negative ? -infinity : infinity), 32);
  } else {
    return OrderOf(std::bit_cast<uint64_t>(negative ? -infinity : infinity), 64);
  }
}

// As lang::Passes reads it: a float is compared as the double that it is.
double NumberAt(uint64_t order, unsigned width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t bits = (order & sign) != 0 ? order & ~sign : ~order;
  if (width == 32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

// The first order in [first, end) whose number is at or above `value` (or above it).
uint64_t Find(OrderInterval all, unsigned width, double value, bool above) {
  uint64_t first = all.first, end = all.last + 1;
  while (first < end) {
    const uint64_t middle = first + (end - first) / 2;
    const double number = NumberAt(middle, width);
    const bool is_before = above ? number <= value : number < value;
    is_before ? first = middle + 1 : end = middle;
  }
  return first;
}

}  // namespace

std::optional<OrderInterval> PassingOrders(const lang::FilterOp& op) {
  const unsigned width = 8u * op.size;
  const bool narrow = op.size == sizeof(float);
  OrderInterval passing{narrow ? OrderOfInfinity<float>(true) : OrderOfInfinity<double>(true),
                        narrow ? OrderOfInfinity<float>(false) : OrderOfInfinity<double>(false)};
  const auto value = std::bit_cast<double>(op.value);
  if (value != value) return std::nullopt;
  const uint64_t at_least = Find(passing, width, value, /*above=*/false);
  const uint64_t above = Find(passing, width, value, /*above=*/true);
  const bool from_value = op.test != FilterTest::kLess && op.test != FilterTest::kLessEqual;
  const bool to_value = op.test != FilterTest::kGreater && op.test != FilterTest::kGreaterEqual;
  if (from_value) passing.first = op.test == FilterTest::kGreater ? above : at_least;
  if (to_value) passing.last = (op.test == FilterTest::kLess ? at_least : above) - 1;
  if (passing.first > passing.last) return std::nullopt;
  return passing;
}

}  // namespace probed::detour

#pragma once
// Comparison of floating-point numbers without floating-point instructions: as integers that are in
// the order of the numbers. Pure.

#include <cstdint>
#include <optional>

#include "engine/lang/filter_code.h"

namespace probed::detour {

// In the order of the numbers; below -inf and above +inf are the NaNs.
constexpr uint64_t OrderOf(uint64_t bits, unsigned width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  const uint64_t all = sign | (sign - 1);
  return (bits & sign) != 0 ? ~bits & all : bits | sign;
}

struct OrderInterval {
  uint64_t first = 0, last = 0;
};

// The orders of the numbers of op.size bytes that pass a test of kFloat; nothing: none does.
std::optional<OrderInterval> PassingOrders(const lang::FilterOp& op);

}  // namespace probed::detour

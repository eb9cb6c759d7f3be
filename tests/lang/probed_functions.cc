#include "tests/lang/probed_functions.h"

namespace probed::lang::testing {

uint64_t ProbedByTest(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t result) {
  return result;
}

uint64_t FilteredByTest(uint64_t number, const void*) {
  return number;
}

}  // namespace probed::lang::testing

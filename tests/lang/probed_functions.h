#pragma once
// What this program probes of itself. Their source is a file of its own, so that the compiler of a
// caller knows nothing of them but the ABI: arguments and memory are as a probe expects them.

#include <cstdint>

namespace probed::lang::testing {

// Returns its last argument.
uint64_t ProbedByTest(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t result);

// Returns `number`.
uint64_t FilteredByTest(uint64_t number, const void* thing);

}  // namespace probed::lang::testing

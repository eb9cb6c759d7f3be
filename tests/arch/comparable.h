#pragma once
// Which instruction forms can be compared with a second run of themselves.

#include <Zydis/Zydis.h>

#include <cstdint>

namespace probed::arch {

// Why not; null when they can.
const char* WhyNotComparable(ZydisMnemonic mnemonic);

// A 67 prefix cuts the addresses of operands, but not the target of a relative branch.
bool NeedsLowAddresses(const ZydisDecodedInstruction& instruction);

// A number from the environment, to repeat or widen a random test.
uint64_t FromEnvironment(const char* name, uint64_t otherwise);

}  // namespace probed::arch

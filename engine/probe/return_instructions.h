#pragma once
// Where a function returns, for return probes that must leave its return address alone: a Go
// program's runtime moves stacks and looks at every return address on them. Any thread.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "elf/file.h"
#include "engine/lang/definition.h"

namespace probed::probe {

// File offsets of the ret instructions of the function that the return probe is on; none where
// return addresses may be replaced. What leaves the function otherwise (a jump to another one, a
// panic) is not seen. NOT_FUNCTION_ENTRY, FUNCTION_END_UNKNOWN, INSTRUCTION_UNDECODABLE,
// FUNCTION_NEVER_RETURNS, ARGUMENT_AT_RETURN.
Result<std::vector<uint64_t>> FindReturnInstructions(const elf::File& file,
                                                     const lang::Definition& definition);

}  // namespace probed::probe

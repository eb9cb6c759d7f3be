#pragma once
// Where a function returns, for return probes that must leave its return address alone: a Go
// program's runtime moves stacks and looks at every return address on them, and of other programs
// it may be asked for. Any thread.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "elf/file.h"
#include "engine/lang/definition.h"

namespace probed::probe {

struct ReturnInstructions {
  std::vector<uint64_t> offsets;  // in the file
  std::string unseen;             // what else leaves the function, in words; empty: nothing
};

// The ret instructions of the function that the return probe is on. What leaves the function
// otherwise (a jump to another one, a panic, an exception) is not seen. NOT_FUNCTION_ENTRY,
// FUNCTION_END_UNKNOWN, FUNCTION_END_DISPUTED, INSTRUCTION_UNDECODABLE, FUNCTION_NEVER_RETURNS,
// ARGUMENT_AT_RETURN.
Result<ReturnInstructions> FindReturnInstructions(const elf::File& file,
                                                  const lang::Definition& definition);

}  // namespace probed::probe

#pragma once
// Judged arguments to a FetchProgram. Pure.

#include <cstdint>
#include <vector>

#include "engine/lang/argument.h"
#include "engine/lang/definition.h"
#include "engine/lang/fetch_code.h"

namespace probed::lang {

// `definition.kind` and `definition.schema` must be set.
FetchProgram Compile(const std::vector<Argument>& arguments, const Definition& definition);

// The highest $argN of a return probe, 0 if there is none.
uint32_t HighestEntryArgument(const std::vector<Argument>& arguments, ProbeKind kind);

}  // namespace probed::lang

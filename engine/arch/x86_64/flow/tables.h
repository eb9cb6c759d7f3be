#pragma once
// Code addresses in data: jump tables and pointers.

#include "engine/arch/x86_64/flow/analysis.h"
#include "engine/arch/x86_64/flow/sweep.h"

namespace probed::arch::flow {

// Every aligned 8-byte word outside code that is an address in code.
void AddDataWords(const ModuleImage& image, Analysis& analysis);

// Every table of 4-byte distances from its own start, as compilers write them for position-
// independent switches: all words from an address that code names up to the next such address that
// lead into code, and on for as long as they do. Reads the code that is found. FLOW_TOO_COMPLEX.
Status FollowTables(const ModuleImage& image, Sweep& sweep, Analysis& analysis);

}  // namespace probed::arch::flow

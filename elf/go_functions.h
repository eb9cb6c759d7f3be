#pragma once
// Names of the functions of a Go program whose symbol table was stripped, from the table that the
// Go runtime itself needs for stack traces. Go, src/internal/abi and debug/gosym (pclntab, 1.18
// on).

#include <optional>
#include <span>
#include <vector>

#include "elf/headers.h"
#include "elf/symbol.h"

namespace probed::elf {

// Empty when there is no .gopclntab of a known version, or it is to be relocated at run time (PIE).
// A size reaches to the next function, padding included.
std::vector<Symbol> ReadGoFunctions(const Image& image, const Headers& headers);

class File;
// Whether the function at `address` is one that the Go compiler made callable with arguments in
// registers, told by its name: C's have no dot, those in assembly end in ".abi0".
bool PassesInGoRegisters(const File& file, LinkAddr address);

}  // namespace probed::elf

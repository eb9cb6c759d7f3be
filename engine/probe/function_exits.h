#pragma once
// How control leaves a function, from its instructions. Any thread.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "elf/file.h"

namespace probed::probe {

struct FunctionExits {
  std::vector<uint64_t> returns;  // file offsets of ret instructions, ascending
  // Ways out on which no ret of the function is executed.
  uint32_t other_functions = 0;  // jumps that leave it, conditional ones and what it runs into too
  uint32_t unknown_jumps = 0;    // indirect, and to no table of the function's that is recognised
  uint32_t switches = 0;         // ret instructions that go elsewhere than to the caller

  bool AllReturn() const { return other_functions + unknown_jumps + switches == 0; }
  // "2 jumps to other functions and 1 jump to where is not known"; empty: AllReturn().
  std::string DescribeOthers() const;
};

// "f.cold", and "f.cold.1" of older compilers: the part of f that is seldom run, set aside.
bool IsColdName(std::string_view name);

// Of the function with those bounds and the part of it that the compiler has set aside, as symbol
// (NAME.cold) or unwind table tell. INSTRUCTION_UNDECODABLE, FUNCTION_END_DISPUTED.
Result<FunctionExits> FindExits(const elf::File& file, const elf::FunctionBounds& function);

}  // namespace probed::probe

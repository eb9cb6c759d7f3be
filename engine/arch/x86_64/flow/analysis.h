#pragma once
// What is learned about a module's code, step by step. One thread, then immutable.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/arch/x86_64/flow/address_set.h"
#include "engine/arch/x86_64/flow/code_image.h"
#include "engine/arch/x86_64/flow/references.h"

namespace probed::arch::flow {

// Why a function's control flow is not known for sure. Bits.
enum Doubt : uint8_t {
  kUndecodable = 1,   // some bytes are no instruction, so others may have been misread
  kUnknownEntry = 2,  // code that nothing runs into and nothing is known to enter
  kComputedJump = 4,  // an indirect jump, and an address inside the function to compute from
};

struct Function {
  CodeRange range;  // up to the next function at most
  uint8_t doubts = 0;
  bool names_inside = false;  // takes the address of code of its own
  bool jumps_indirectly = false;
};

// Dead bytes between code: nops and int3 that nothing runs into or enters.
struct Padding {
  uint64_t start = 0, end = 0;
};

struct Analysis {
  explicit Analysis(CodeImage image)
      : code(std::move(image)), starts(code.size()), entries(code.size()) {}

  CodeImage code;
  std::vector<Function> functions;  // ascending, apart
  AddressSet starts;                // of the instructions, as a linear reading gives them
  AddressSet entries;               // where control may arrive other than from above
  std::vector<Padding> padding;     // ascending; 5 bytes or more
  bool constants_are_addresses = false;

  const Function* FunctionAt(uint64_t address) const;
  bool IsStart(uint64_t address) const;
  bool IsEntered(uint64_t address) const;
  // The first entry in (start, end), or `end`. Both in one segment.
  uint64_t FindEntry(uint64_t start, uint64_t end) const;
  // Where the nops and int3 from `start` on end: at other code, an entry, or the segment's end.
  uint64_t SkipPadding(uint64_t start) const;
};

// Fills everything. FLOW_TOO_COMPLEX: hostile, or not made by a compiler.
Result<Analysis> Analyze(const ModuleImage& image);

}  // namespace probed::arch::flow

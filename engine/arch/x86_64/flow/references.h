#pragma once
// What one instruction says about where control and addresses go. Fast: no operands are decoded.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace probed::arch::flow {

struct Reference {
  enum class Kind : uint8_t {
    kBranch,    // jmp, jcc, loop, jrcxz, call, xbegin: control goes there
    kAddress,   // lea: it is made a pointer
    kConstant,  // a number that may be an address
    kOperand,   // what is loaded or stored
  };
  Kind kind = Kind::kOperand;
  uint64_t address = 0;
};

struct Sketch {
  uint8_t length = 0;
  bool leaves = false;            // never runs into what stands behind it
  bool is_indirect_jump = false;  // through a register, or memory that a register names
  bool is_padding = false;        // nop of any length, int3
  bool is_landing = false;        // endbr64: made for indirect branches
  uint8_t count = 0;
  std::array<Reference, 2> references{};
};

// `constants_are_addresses`: the module is linked at a fixed address, so 32-bit constants may be
// addresses. Nothing: no instruction.
std::optional<Sketch> SketchInstruction(std::span<const uint8_t> code, uint64_t address,
                                        bool constants_are_addresses);

}  // namespace probed::arch::flow

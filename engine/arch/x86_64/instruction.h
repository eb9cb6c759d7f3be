#pragma once
// One decoded x86-64 instruction, reduced to what displaced execution needs. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace probed::arch {

// How an instruction can be executed away from where it stands.
enum class Execution : uint8_t {
  kEmulate,        // cheap to carry out on the register file: nop, push, jmp, jcc, call, ret, lea...
  kCopyAndJump,    // position-independent (after rewriting): the copy may end in a jump back
  kCopyAndStep,    // must be single-stepped and fixed up afterwards (syscall...)
  kRefused,        // int3, hlt, privileged, undecodable: no probe here
};

struct Instruction {
  std::array<uint8_t, 15> bytes{};
  uint8_t length = 0;
  Execution execution = Execution::kRefused;
  bool rip_relative = false;         // has a disp32 based on rip at bytes[displacement_at]
  uint8_t displacement_at = 0;
  bool is_syscall = false;
  bool is_call = false;
  bool is_return = false;
  bool is_branch = false;            // jmp, jcc, loop, jrcxz
  std::string refusal;               // why kRefused, in words for the user
  std::string text;                  // disassembly, for explain

  std::span<const uint8_t> code() const { return {bytes.data(), length}; }
};

// `code` starts at the instruction and holds at least its bytes (15 are always enough); `address` is
// where it runs. Undecodable: INSTRUCTION_UNDECODABLE.
Result<Instruction> Decode(std::span<const uint8_t> code, uint64_t address);

}  // namespace probed::arch

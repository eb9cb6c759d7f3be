#pragma once
// One decoded x86-64 instruction, reduced to what displaced execution needs. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/arch/x86_64/operation.h"

namespace probed::arch {

// How an instruction can be executed away from where it stands.
enum class Execution : uint8_t {
  kEmulate,      // cheap to carry out on the register file: nop, push, jmp, jcc, call, ret, lea...
  kCopyAndJump,  // position-independent (after rewriting): the copy ends in a jump back
  kCopyAndTrap,  // the copy ends in a breakpoint, and the tracer moves the thread back (popf)
  kRefused,      // int3, hlt, privileged, undecodable: no probe here
};

struct Instruction {
  std::array<uint8_t, 15> bytes{};
  uint8_t length = 0;
  Execution execution = Execution::kRefused;
  bool rip_relative = false;  // has a 32-bit distance from its own end at bytes[displacement_at]
  uint8_t displacement_at = 0;
  bool is_syscall = false;
  bool pushes_flags = false;  // pushf: would see the trap flag of a single step
  bool pops_flags = false;    // popf
  bool repeats = false;       // a string instruction under rep: executed round by round
  bool is_call = false;
  bool is_return = false;
  bool is_branch = false;  // jmp, jcc, loop, jrcxz
  bool is_far = false;     // a far jump or return
  Operation operation;     // what Emulate does; kind is kNone unless kEmulate
  std::string refusal;     // why kRefused, in words for the user
  std::string text;        // disassembly in AT&T syntax, for explain

  std::span<const uint8_t> code() const { return {bytes.data(), length}; }
};

// `code` starts at the instruction and holds at least its bytes (15 are always enough); `address`
// is where it runs. Undecodable: INSTRUCTION_UNDECODABLE.
Result<Instruction> Decode(std::span<const uint8_t> code, uint64_t address);

}  // namespace probed::arch

#pragma once
// Writes instructions one behind the other so that they run away from their place, without a
// tracer. Private to this folder.

#include <cstdint>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/code_writer.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"

namespace probed::arch {

// Where the program goes on behind an instruction that does not branch.
enum class Next : uint8_t {
  kProgram,  // with a jump back, behind the original
  kCopy,     // with what is appended next
};

class CopyWriter {
 public:
  explicit CopyWriter(uint64_t copy_address) : code_(copy_address) {}

  // `instruction` (from `original`) must not be one of those that need a tracer.
  // DISPLACEMENT_OUT_OF_RANGE when its rip-relative operand cannot be reached.
  Status Append(const Instruction& instruction, uint64_t original, Next next);
  // The bytes alone, to be single-stepped, and a breakpoint behind those that run up to one.
  Status AppendForTracer(const Instruction& instruction, uint64_t original);

  // Of the first instruction that was written.
  uint8_t first_length() const { return first_length_; }
  std::vector<uint8_t> TakeCode() { return code_.Take(); }
  std::vector<CopyState> TakeStates() { return std::move(states_); }

 private:
  struct Source {
    const Instruction& instruction;
    uint64_t original;

    uint64_t after() const { return original + instruction.length; }
    uint64_t target() const;  // of a branch that names its distance
  };

  Status Moved(const Source& source, CodeWriter& writer) const;
  Status Plain(const Source& source, Next next);
  void Jump(const Source& source);
  void Conditional(const Source& source, Next next);
  void CountedOrFar(const Source& source, Next next);
  void RelativeCall(const Source& source);
  Status IndirectCall(const Source& source);
  void Syscall(const Source& source, Next next);
  void PushAndJump(CodeWriter jump, uint64_t return_address);

  void Mark(uint64_t original_ip, uint8_t pushed = 0);
  void MarkFirst();
  void GoOn(const Source& source, Next next);

  CodeWriter code_;
  std::vector<CopyState> states_;
  uint8_t index_ = 0;  // of the instruction
  uint8_t first_length_ = 0;
};

// Popf and calls through the stack pointer: cannot leave their copy by themselves.
bool NeedsTracer(const Instruction& instruction);

// Never runs into what stands behind it: jumps and returns.
bool LeavesByItself(const Instruction& instruction);

}  // namespace probed::arch

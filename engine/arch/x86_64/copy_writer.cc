#include "engine/arch/x86_64/copy_writer.h"

#include <algorithm>
#include <cstring>

namespace probed::arch {
namespace {

Error OutOfRange(uint64_t original, uint64_t copy_address) {
  return {
      .code = ErrorCode::kFailedPrecondition,
      .reason = "DISPLACEMENT_OUT_OF_RANGE",
      .message = "the copy is too far from what the instruction refers to by distance",
      .hint = "place the copy within 2 GiB of the instruction and of its operand",
      .metadata = {{"original", std::to_string(original)}, {"copy", std::to_string(copy_address)}}};
}

bool IsRelative(const Instruction& instruction) {
  return instruction.operation.source.kind == Operand::Kind::kImmediate;
}

bool UsesStackPointer(const Operand& operand) {
  return operand.reg == kRsp || operand.memory.base == kRsp;
}

// `jmp *operand` from `call *operand`: the other row of opcode ff (SDM vol. 2, A.4). No prefix has
// this value, so its first occurrence is the opcode.
Instruction JumpInsteadOfCall(const Instruction& call) {
  Instruction jump = call;
  auto opcode = std::ranges::find(jump.bytes, uint8_t{0xff});
  constexpr uint8_t kCallToJump = (4 ^ 2) << 3;
  opcode[1] = static_cast<uint8_t>(opcode[1] ^ kCallToJump);
  return jump;
}

}  // namespace

bool NeedsTracer(const Instruction& instruction) {
  bool call_through_stack = instruction.is_call && !IsRelative(instruction) &&
                            UsesStackPointer(instruction.operation.source);
  return call_through_stack || instruction.execution == Execution::kCopyAndTrap;
}

bool LeavesByItself(const Instruction& instruction) {
  return instruction.is_return || instruction.is_far ||
         instruction.operation.kind == OperationKind::kJump;
}

uint64_t CopyWriter::Source::target() const {
  return after() + static_cast<uint64_t>(instruction.operation.source.immediate);
}

Status CopyWriter::Append(const Instruction& instruction, uint64_t original, Next next) {
  Source source{instruction, original};
  Mark(original);
  Status written;
  if (instruction.is_syscall) {
    Syscall(source, next);
  } else if (instruction.is_call && IsRelative(instruction)) {
    RelativeCall(source);
  } else if (instruction.is_call) {
    written = IndirectCall(source);
  } else if (instruction.is_branch && IsRelative(instruction)) {
    instruction.operation.kind == OperationKind::kJump ? Jump(source) : Conditional(source, next);
  } else {
    written = Plain(source, next);
  }
  ++index_;
  return written;
}

Status CopyWriter::AppendForTracer(const Instruction& instruction, uint64_t original) {
  Source source{instruction, original};
  Mark(original);
  PROBED_RETURN_IF_ERROR(Moved(source, code_));
  MarkFirst();
  if (instruction.execution != Execution::kCopyAndTrap) return {};
  constexpr uint8_t kBreakpoint = 0xcc;
  Mark(source.after());
  code_.Bytes({kBreakpoint});
  return {};
}

// The instruction itself, its distance from its own end corrected for the new place.
Status CopyWriter::Moved(const Source& source, CodeWriter& writer) const {
  std::array<uint8_t, 15> bytes = source.instruction.bytes;
  if (source.instruction.rip_relative) {
    int32_t displacement;
    uint8_t* where = &bytes[source.instruction.displacement_at];
    std::memcpy(&displacement, where, sizeof displacement);
    int64_t moved = displacement + static_cast<int64_t>(source.original - writer.here());
    if (!FitsInt32(moved)) return OutOfRange(source.original, writer.here());
    displacement = static_cast<int32_t>(moved);
    std::memcpy(where, &displacement, sizeof displacement);
  }
  writer.Bytes(std::span<const uint8_t>(bytes.data(), source.instruction.length));
  return {};
}

Status CopyWriter::Plain(const Source& source, Next next) {
  PROBED_RETURN_IF_ERROR(Moved(source, code_));
  MarkFirst();
  if (!LeavesByItself(source.instruction)) GoOn(source, next);
  return {};
}

void CopyWriter::Jump(const Source& source) {
  code_.Jump(source.target());
  MarkFirst();
}

void CopyWriter::Conditional(const Source& source, Next next) {
  const Operation& operation = source.instruction.operation;
  constexpr uint8_t kLength = 6;
  int64_t distance = static_cast<int64_t>(source.target() - (code_.here() + kLength));
  if (operation.kind != OperationKind::kJumpIf || !FitsInt32(distance)) {
    return CountedOrFar(source, next);
  }
  code_.Bytes({0x0f, static_cast<uint8_t>(0x80 | operation.condition)});
  code_.Little(static_cast<int32_t>(distance));
  MarkFirst();
  GoOn(source, next);
}

// Where the branch has no 32-bit form or that does not reach: the same condition over the way on,
// the way on, the way there.
void CopyWriter::CountedOrFar(const Source& source, Next next) {
  const Operation& operation = source.instruction.operation;
  if (operation.kind == OperationKind::kJumpIf) {
    code_.Bytes({static_cast<uint8_t>(0x70 | operation.condition)});
  } else {
    if (operation.width == 4) code_.Bytes({0x67});
    code_.Bytes({source.instruction.bytes[source.instruction.length - 2]});
  }
  constexpr uint8_t kShortJump = 2;
  CodeWriter on(code_.here() + 1);
  if (next == Next::kProgram) on.Jump(source.after());
  CodeWriter there(code_.here() + 1 + (next == Next::kProgram ? on.size() : kShortJump));
  there.Jump(source.target());
  if (next == Next::kCopy) on.Bytes({0xeb, static_cast<uint8_t>(there.size())});
  code_.Bytes({static_cast<uint8_t>(on.size())});
  MarkFirst();
  Mark(source.after());
  code_.Bytes(on.Take());
  Mark(source.target());
  code_.Bytes(there.Take());
}

// A call becomes `push` of the original return address, which lies behind the code, and a jump: the
// push faults exactly where the call would, and unwinders never see an address of ours.
void CopyWriter::PushAndJump(CodeWriter jump, uint64_t return_address) {
  code_.Bytes(jump.Take());
  code_.Little(return_address);
}

void CopyWriter::RelativeCall(const Source& source) {
  CodeWriter jump(code_.here() + CodeWriter::kPushLength);
  jump.Jump(source.target());
  code_.Push(static_cast<uint8_t>(jump.size()));
  MarkFirst();
  Mark(source.target());
  PushAndJump(std::move(jump), source.after());
}

// As above, but a thread between the two is taken back to the call: where it goes may be in memory
// that cannot be read any more. What is left is a word below the stack pointer that the call would
// have overwritten.
Status CopyWriter::IndirectCall(const Source& source) {
  Instruction moved = JumpInsteadOfCall(source.instruction);
  CodeWriter jump(code_.here() + CodeWriter::kPushLength);
  PROBED_RETURN_IF_ERROR(Moved({moved, source.original}, jump));
  code_.Push(static_cast<uint8_t>(jump.size()));
  MarkFirst();
  Mark(source.original, sizeof(uint64_t));
  PushAndJump(std::move(jump), source.after());
  return {};
}

// The kernel leaves the return ip in rcx, so the copy loads the original's before it goes on. No
// step is needed: a child of fork or clone, and a call that blocks for hours, go on by themselves.
void CopyWriter::Syscall(const Source& source, Next next) {
  code_.Bytes(source.instruction.code());
  MarkFirst();
  Mark(source.after());
  code_.Bytes({0x48, 0xb9});
  code_.Little(source.after());
  GoOn(source, next);
}

void CopyWriter::GoOn(const Source& source, Next next) {
  if (next == Next::kCopy) return;
  Mark(source.after());
  code_.Jump(source.after());
}

void CopyWriter::Mark(uint64_t original_ip, uint8_t pushed) {
  states_.push_back({code_.size(), original_ip, pushed, index_});
}

void CopyWriter::MarkFirst() {
  if (first_length_ == 0) first_length_ = static_cast<uint8_t>(code_.size());
}

}  // namespace probed::arch

#include "engine/arch/x86_64/relocate.h"

#include <algorithm>
#include <cstring>

#include "engine/arch/x86_64/code_writer.h"

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

struct Place {
  uint64_t original;
  uint64_t copy;

  uint64_t After(const Instruction& instruction) const { return original + instruction.length; }
};

// The target of a branch that names its distance.
uint64_t RelativeTarget(const Instruction& instruction, const Place& place) {
  return place.After(instruction) + static_cast<uint64_t>(instruction.operation.source.immediate);
}

bool IsRelative(const Instruction& instruction) {
  return instruction.operation.source.kind == Operand::Kind::kImmediate;
}

// The instruction itself, its distance from its own end corrected for the new place.
Status WriteMoved(const Instruction& instruction, const Place& place, CodeWriter& writer) {
  std::array<uint8_t, 15> bytes = instruction.bytes;
  if (instruction.rip_relative) {
    int32_t displacement;
    uint8_t* where = &bytes[instruction.displacement_at];
    std::memcpy(&displacement, where, sizeof displacement);
    int64_t moved = displacement + static_cast<int64_t>(place.original - place.copy);
    if (!FitsInt32(moved)) return OutOfRange(place.original, place.copy);
    displacement = static_cast<int32_t>(moved);
    std::memcpy(where, &displacement, sizeof displacement);
  }
  writer.Bytes(std::span<const uint8_t>(bytes.data(), instruction.length));
  return {};
}

OutOfLineCopy Finish(CodeWriter writer, std::vector<CopyState> states, uint8_t first_length) {
  return {.code = writer.Take(),
          .instruction_length = first_length,
          .boosted = true,
          .states = std::move(states)};
}

OutOfLineCopy CopyRelativeJump(const Instruction& instruction, const Place& place) {
  CodeWriter writer(place.copy);
  writer.Jump(RelativeTarget(instruction, place));
  uint8_t length = writer.size();
  return Finish(std::move(writer), {{0, place.original}}, length);
}

// jcc, loop and jrcxz become: the same condition over the way back, the way back, the way there.
OutOfLineCopy CopyConditional(const Instruction& instruction, const Place& place) {
  CodeWriter writer(place.copy);
  const Operation& operation = instruction.operation;
  if (operation.kind == OperationKind::kJumpIf) {
    writer.Bytes({static_cast<uint8_t>(0x70 | operation.condition)});
  } else {
    if (operation.width == 4) writer.Bytes({0x67});
    writer.Bytes({instruction.bytes[instruction.length - 2]});
  }
  CodeWriter back(writer.here() + 1);
  back.Jump(place.After(instruction));
  uint8_t back_size = back.size();
  writer.Bytes({back_size});
  uint8_t length = writer.size();
  writer.Bytes(back.Take());
  writer.Jump(RelativeTarget(instruction, place));
  uint8_t taken = static_cast<uint8_t>(length + back_size);
  return Finish(std::move(writer),
                {{0, place.original},
                 {length, place.After(instruction)},
                 {taken, RelativeTarget(instruction, place)}},
                length);
}

// A call becomes `push` of the original return address, which lies behind the code, and a jump: the
// push faults exactly where the call would, and unwinders never see an address of ours.
OutOfLineCopy CopyRelativeCall(const Instruction& instruction, const Place& place) {
  uint64_t target = RelativeTarget(instruction, place);
  CodeWriter jump(place.copy + CodeWriter::kPushLength);
  jump.Jump(target);
  CodeWriter writer(place.copy);
  writer.Push(jump.size());
  writer.Bytes(jump.Take());
  writer.Little(place.After(instruction));
  return Finish(std::move(writer), {{0, place.original}, {CodeWriter::kPushLength, target}},
                CodeWriter::kPushLength);
}

bool UsesStackPointer(const Operand& operand) {
  return operand.reg == kRsp || operand.memory.base == kRsp;
}

// `jmp *operand` from `call *operand`: the other row of opcode ff (SDM vol. 2, A.4). No prefix has
// this value, so its first occurrence is the opcode.
Instruction JumpInsteadOfCall(const Instruction& call) {
  constexpr uint8_t kFromRow2ToRow4 = 0x30;
  Instruction jump = call;
  *(std::find(jump.bytes.begin(), jump.bytes.end(), 0xff) + 1) ^= kFromRow2ToRow4;
  return jump;
}

// As a direct call, but the jump may fault; then LeaveCopy takes the return address off again. What
// remains is a word below the stack pointer that the call would have overwritten.
Result<OutOfLineCopy> CopyIndirectCall(const Instruction& instruction, const Place& place) {
  CodeWriter jump(place.copy + CodeWriter::kPushLength);
  PROBED_RETURN_IF_ERROR(WriteMoved(JumpInsteadOfCall(instruction),
                                    {place.original, place.copy + CodeWriter::kPushLength}, jump));
  CodeWriter writer(place.copy);
  writer.Push(jump.size());
  writer.Bytes(jump.Take());
  writer.Little(place.After(instruction));
  constexpr uint8_t kPushed = sizeof(uint64_t);
  return Finish(std::move(writer),
                {{0, place.original}, {CodeWriter::kPushLength, place.original, kPushed}},
                CodeWriter::kPushLength);
}

// The kernel leaves the return ip in rcx, so the copy loads the original's before it jumps back. No
// step is needed: a child of fork or clone, and a call that blocks for hours, go on by themselves.
OutOfLineCopy CopySyscall(const Instruction& instruction, const Place& place) {
  uint64_t after = place.After(instruction);
  CodeWriter writer(place.copy);
  writer.Bytes(instruction.code());
  writer.Bytes({0x48, 0xb9});
  writer.Little(after);
  uint8_t loaded = writer.size();
  writer.Jump(after);
  return Finish(std::move(writer),
                {{0, place.original}, {instruction.length, after}, {loaded, after}},
                instruction.length);
}

bool MustBeStepped(const Instruction& instruction) {
  return instruction.is_call || instruction.execution == Execution::kCopyAndStep;
}

bool LeavesByItself(const Instruction& instruction) {
  return instruction.is_return || instruction.operation.kind == OperationKind::kJump;
}

Result<OutOfLineCopy> CopyPlain(const Instruction& instruction, const Place& place) {
  CodeWriter writer(place.copy);
  PROBED_RETURN_IF_ERROR(WriteMoved(instruction, place, writer));
  std::vector<CopyState> states = {{0, place.original}};
  bool stepped = MustBeStepped(instruction);
  if (!instruction.is_call && !LeavesByItself(instruction)) {
    states.push_back({instruction.length, place.After(instruction)});
    if (!stepped) writer.Jump(place.After(instruction));
  }
  OutOfLineCopy copy = Finish(std::move(writer), std::move(states), instruction.length);
  copy.boosted = !stepped;
  return copy;
}

Error Refused(const Instruction& instruction) {
  return {.code = ErrorCode::kFailedPrecondition,
          .reason = "INSTRUCTION_REFUSED",
          .message = instruction.text + ": " + instruction.refusal,
          .hint = "probe the instruction before or after it",
          .metadata = {}};
}

}  // namespace

Result<OutOfLineCopy> BuildCopy(const Instruction& instruction, uint64_t original,
                                uint64_t copy_address) {
  if (instruction.execution == Execution::kRefused) return Refused(instruction);
  Place place{original, copy_address};
  if (instruction.is_syscall) return CopySyscall(instruction, place);
  if (instruction.is_call && IsRelative(instruction)) return CopyRelativeCall(instruction, place);
  if (instruction.is_call && !UsesStackPointer(instruction.operation.source)) {
    return CopyIndirectCall(instruction, place);
  }
  if (instruction.is_branch && IsRelative(instruction)) {
    return instruction.operation.kind == OperationKind::kJump ? CopyRelativeJump(instruction, place)
                                                              : CopyConditional(instruction, place);
  }
  return CopyPlain(instruction, place);
}

}  // namespace probed::arch

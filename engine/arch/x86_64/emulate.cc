#include "engine/arch/x86_64/emulate.h"

#include "engine/arch/x86_64/eflags.h"
#include "engine/arch/x86_64/flags.h"

namespace probed::arch {
namespace {

using Kind = OperationKind;

// Through a pointer to member, because the kernel's struct has its own order.
unsigned long long user_regs_struct::*const kRegisters[] = {
    &user_regs_struct::rax, &user_regs_struct::rcx, &user_regs_struct::rdx, &user_regs_struct::rbx,
    &user_regs_struct::rsp, &user_regs_struct::rbp, &user_regs_struct::rsi, &user_regs_struct::rdi,
    &user_regs_struct::r8,  &user_regs_struct::r9,  &user_regs_struct::r10, &user_regs_struct::r11,
    &user_regs_struct::r12, &user_regs_struct::r13, &user_regs_struct::r14, &user_regs_struct::r15,
};

uint64_t Truncate(uint64_t value, uint8_t width) {
  return width == 4 ? static_cast<uint32_t>(value) : value;
}

// A processor faults at the branch itself when the target is not canonical; only the copy can do
// so. With five-level paging more is canonical than this admits, and the copy is right there as
// well.
bool IsCanonical(uint64_t address) {
  int64_t extended = static_cast<int64_t>(address << 16) >> 16;
  return static_cast<uint64_t>(extended) == address;
}

// One instruction in progress: works on a copy of the registers, so that declining changes nothing.
class Emulator {
 public:
  Emulator(const Instruction& instruction, const user_regs_struct& regs, MemoryBus& memory)
      : operation_(instruction.operation), regs_(regs), memory_(memory) {
    regs_.rip += instruction.length;
  }

  bool Run();
  const user_regs_struct& regs() const { return regs_; }

 private:
  uint64_t Get(RegisterNumber number) const {
    return number == kRip ? regs_.rip : regs_.*kRegisters[number];
  }
  void Set(RegisterNumber number, uint64_t value) {
    regs_.*kRegisters[number] =
        Truncate(value, operation_.width);  // 32-bit results are zero-extended
  }

  uint64_t OffsetOf(const MemoryOperand& operand) const;
  uint64_t AddressOf(const MemoryOperand& operand) const;
  bool Load(uint64_t address, uint64_t& value);
  bool ReadSource(uint64_t& value);

  bool Push();
  bool Pop();
  bool Lea();
  bool Compute();
  bool JumpIf(bool taken);
  bool Loop();
  bool Go();
  bool Return();
  bool Leave();
  bool GoTo(uint64_t target);
  bool PushValue(uint64_t value);

  const Operation& operation_;
  user_regs_struct regs_;
  MemoryBus& memory_;
};

uint64_t Emulator::OffsetOf(const MemoryOperand& operand) const {
  uint64_t sum = static_cast<uint64_t>(int64_t{operand.displacement});
  if (operand.base != kNoRegister) sum += Get(operand.base);
  if (operand.index != kNoRegister) sum += Get(operand.index) * operand.scale;
  return operand.address_is_32_bit ? static_cast<uint32_t>(sum) : sum;
}

uint64_t Emulator::AddressOf(const MemoryOperand& operand) const {
  uint64_t base = 0;
  if (operand.segment == Segment::kFs) base = regs_.fs_base;
  if (operand.segment == Segment::kGs) base = regs_.gs_base;
  return base + OffsetOf(operand);
}

bool Emulator::Load(uint64_t address, uint64_t& value) {
  return memory_.Load(address, std::as_writable_bytes(std::span(&value, 1)));
}

bool Emulator::ReadSource(uint64_t& value) {
  const Operand& source = operation_.source;
  switch (source.kind) {
    case Operand::Kind::kRegister:
      value = Get(source.reg);
      return true;
    case Operand::Kind::kImmediate:
      value = static_cast<uint64_t>(source.immediate);
      return true;
    case Operand::Kind::kMemory:
      return Load(AddressOf(source.memory), value);
    case Operand::Kind::kNone:
      return false;
  }
  return false;
}

bool Emulator::PushValue(uint64_t value) {
  if (!memory_.Store(regs_.rsp - 8, std::as_bytes(std::span(&value, 1)))) return false;
  regs_.rsp -= 8;
  return true;
}

bool Emulator::Push() {
  uint64_t value = 0;
  return ReadSource(value) && PushValue(value);
}

bool Emulator::Pop() {
  uint64_t value = 0;
  if (!Load(regs_.rsp, value)) return false;
  regs_.rsp += 8;
  Set(operation_.destination, value);  // after the increment: pop %rsp keeps what it loaded
  return true;
}

bool Emulator::Lea() {
  Set(operation_.destination, OffsetOf(operation_.source.memory));
  return true;
}

bool Emulator::Compute() {
  uint64_t right = 0;
  if (!ReadSource(right)) return false;
  uint64_t left = Get(operation_.destination);
  ArithmeticResult result = ComputeArithmetic(operation_.kind, left, right, operation_.width);
  regs_.eflags = (regs_.eflags & ~kArithmeticFlags) | result.flags;
  bool keeps_result = operation_.kind != Kind::kCompare && operation_.kind != Kind::kTest;
  if (keeps_result) Set(operation_.destination, result.value);
  return true;
}

bool Emulator::GoTo(uint64_t target) {
  regs_.rip = target;
  return IsCanonical(target);
}

bool Emulator::JumpIf(bool taken) {
  return !taken || GoTo(regs_.rip + static_cast<uint64_t>(operation_.source.immediate));
}

bool Emulator::Loop() {
  Set(kRcx, Get(kRcx) - 1);
  bool again = regs_.rcx != 0;
  bool equal = (regs_.eflags & kZeroFlag) != 0;
  if (operation_.kind == Kind::kLoopIfEqual) again = again && equal;
  if (operation_.kind == Kind::kLoopIfNotEqual) again = again && !equal;
  return JumpIf(again);
}

// Jump and call: the source is a distance when immediate and an address otherwise.
bool Emulator::Go() {
  uint64_t target = 0;
  if (!ReadSource(target)) return false;
  if (operation_.source.kind == Operand::Kind::kImmediate) target += regs_.rip;
  if (!IsCanonical(target)) return false;  // before the push: memory is not rolled back
  if (operation_.kind == Kind::kCall && !PushValue(regs_.rip)) return false;
  regs_.rip = target;
  return true;
}

bool Emulator::Return() {
  uint64_t target = 0;
  if (!Load(regs_.rsp, target)) return false;
  regs_.rsp += 8 + static_cast<uint64_t>(operation_.source.immediate);
  return GoTo(target);
}

bool Emulator::Leave() {
  uint64_t frame = 0;
  if (!Load(regs_.rbp, frame)) return false;
  regs_.rsp = regs_.rbp + 8;
  regs_.rbp = frame;
  return true;
}

bool Emulator::Run() {
  uint64_t value = 0;
  switch (operation_.kind) {
    case Kind::kNone:
      return false;
    case Kind::kNop:
      return true;
    case Kind::kPush:
      return Push();
    case Kind::kPop:
      return Pop();
    case Kind::kMove:
      if (!ReadSource(value)) return false;
      Set(operation_.destination, value);
      return true;
    case Kind::kLea:
      return Lea();
    case Kind::kAdd:
    case Kind::kSub:
    case Kind::kCompare:
    case Kind::kAnd:
    case Kind::kOr:
    case Kind::kXor:
    case Kind::kTest:
      return Compute();
    case Kind::kJumpIf:
      return JumpIf(ConditionHolds(operation_.condition, regs_.eflags));
    case Kind::kJumpIfCountZero:
      return JumpIf(Truncate(regs_.rcx, operation_.width) == 0);
    case Kind::kLoop:
    case Kind::kLoopIfEqual:
    case Kind::kLoopIfNotEqual:
      return Loop();
    case Kind::kJump:
    case Kind::kCall:
      return Go();
    case Kind::kReturn:
      return Return();
    case Kind::kLeave:
      return Leave();
  }
  return false;
}

}  // namespace

EmulationResult Emulate(const Instruction& instruction, user_regs_struct& regs, MemoryBus& memory) {
  // The copy raises the debug and alignment traps of a program that asked for them.
  if ((regs.eflags & (kTrapFlag | kAlignmentCheck)) != 0) return EmulationResult::kDeclined;
  Emulator emulator(instruction, regs, memory);
  if (!emulator.Run()) return EmulationResult::kDeclined;
  regs = emulator.regs();
  return EmulationResult::kDone;
}

}  // namespace probed::arch

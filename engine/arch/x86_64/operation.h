#pragma once
// What an emulated instruction does, decided once at decode time so that a hit costs no decoding.

#include <cstdint>

namespace probed::arch {

// General registers by their number in the encoding: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp ... 15 r15.
using RegisterNumber = uint8_t;
inline constexpr RegisterNumber kRcx = 1;
inline constexpr RegisterNumber kRsp = 4;
inline constexpr RegisterNumber kRbp = 5;
inline constexpr RegisterNumber kRip = 16;
inline constexpr RegisterNumber kNoRegister = 0xff;

enum class Segment : uint8_t { kFlat, kFs, kGs };

struct MemoryOperand {
  RegisterNumber base = kNoRegister;  // kRip: the end of the instruction
  RegisterNumber index = kNoRegister;
  uint8_t scale = 1;
  Segment segment = Segment::kFlat;
  bool address_is_32_bit = false;  // 67 prefix: the sum is cut before the segment base is added
  int32_t displacement = 0;
};

struct Operand {
  enum class Kind : uint8_t { kNone, kRegister, kImmediate, kMemory };
  Kind kind = Kind::kNone;
  RegisterNumber reg = kNoRegister;
  int64_t immediate = 0;  // for a relative branch: distance from the end of the instruction
  MemoryOperand memory = {};
};

enum class OperationKind : uint8_t {
  kNone,  // not emulated
  kNop,
  kPush,
  kPop,
  kMove,
  kLea,
  kAdd,
  kSub,
  kCompare,
  kAnd,
  kOr,
  kXor,
  kTest,
  kJump,
  kJumpIf,
  kLoop,
  kLoopIfEqual,
  kLoopIfNotEqual,
  kJumpIfCountZero,
  kCall,
  kReturn,
  kLeave,
};

struct Operation {
  OperationKind kind = OperationKind::kNone;
  uint8_t width = 8;      // bytes of the operands; of the counter for loops and jrcxz
  uint8_t condition = 0;  // kJumpIf: the low four bits of the opcode
  RegisterNumber destination = kNoRegister;
  Operand source = {};  // also the target of a jump or call, and what `ret imm16` releases
};

}  // namespace probed::arch

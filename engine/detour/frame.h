#pragma once
// What a detour keeps on the program's stack, below the red zone, and which registers its body may
// change. Offsets are from the stack pointer of the body.

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/detour/detour.h"
#include "engine/lang/registers.h"

namespace probed::detour {

inline constexpr uint32_t kRedZone = 128;  // System V x86-64 ABI, section 3.2.2
inline constexpr uint32_t kLengthWords = 4;

struct FrameNeeds {
  bool strings = false;     // some probe stores data of variable length
  bool full_flags = false;  // some probe fetches %flags
  bool shadow = false;      // a return: the shadow stack is at hand
};

class Frame {
 public:
  explicit Frame(FrameNeeds needs);

  uint32_t size() const { return size_; }  // from the body's stack pointer up to the program's
  // From there up to the red zone are the saved registers, the first of slots() lowest.
  uint32_t pushed() const { return pushed_; }
  bool has_full_flags() const { return needs_.full_flags; }

  // Where pushfq puts the flags register; only with has_full_flags.
  static constexpr uint32_t kFullFlags = 0;
  // lahf in the second byte, the overflow flag in the first.
  uint32_t status_flags() const { return status_flags_; }
  // Scratch. The payload's size, then where it ends in the record; an 8-byte store may begin there.
  uint32_t payload_bytes() const { return scratch_; }
  uint32_t limit() const { return scratch_; }
  // A length, or an array's place: of one field at a time.
  uint32_t length() const { return scratch_ + 8; }
  uint32_t array_base() const { return scratch_ + 8; }
  uint32_t array_index() const { return scratch_ + 16; }
  // 4 bytes: the length word (payload.h) that a string was measured to have.
  uint32_t length_word(uint32_t string) const { return scratch_ + 24 + 4 * string; }

  // The ShadowStack of this thread, and the ShadowFrame that returns.
  uint32_t shadow_stack() const { return shadow_; }
  uint32_t shadow_frame() const { return shadow_ + 8; }

  struct Slot {
    uint8_t number = 0;  // the processor's number of the register
    uint16_t offset = 0;
    uint16_t user_regs_offset = 0;
  };
  const std::vector<Slot>& slots() const { return slots_; }
  // Nothing: the body leaves this register alone.
  std::optional<uint16_t> OffsetOf(uint8_t number) const;

 private:
  FrameNeeds needs_;
  uint32_t status_flags_ = 0;
  uint32_t scratch_ = 0;
  uint32_t shadow_ = 0;
  uint32_t pushed_ = 0;
  uint32_t size_ = 0;
  std::vector<Slot> slots_;
};

// The processor's number of a general-purpose register; nothing for %ip, %cs and their like.
std::optional<uint8_t> NumberOf(lang::Reg reg);

}  // namespace probed::detour

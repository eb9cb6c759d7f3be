#include "engine/detour/frame.h"

#include <sys/user.h>

#include <array>
#include <cstddef>

namespace probed::detour {
namespace {

constexpr uint32_t kScratchBytes = 24 + 4 * kLengthWords;

struct BodyRegister {
  uint8_t number;
  uint16_t user_regs_offset;
  bool strings_only;
};

constexpr std::array<BodyRegister, 9> kBodyRegisters = {{
    {0, offsetof(user_regs_struct, rax), false},
    {1, offsetof(user_regs_struct, rcx), false},
    {2, offsetof(user_regs_struct, rdx), false},
    {6, offsetof(user_regs_struct, rsi), false},
    {7, offsetof(user_regs_struct, rdi), false},
    {8, offsetof(user_regs_struct, r8), false},
    {9, offsetof(user_regs_struct, r9), false},
    {10, offsetof(user_regs_struct, r10), false},
    {11, offsetof(user_regs_struct, r11), true},
}};

// In the order of lang::Reg, up to r15.
constexpr std::array<uint8_t, 16> kNumbers = {0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};

}  // namespace

Frame::Frame(FrameNeeds needs) : needs_(needs) {
  uint32_t offset = needs.full_flags ? 8 : 0;
  status_flags_ = offset;
  offset += 8;
  scratch_ = offset;
  if (needs.strings) offset += kScratchBytes;
  shadow_ = offset;
  if (needs.shadow) offset += 16;
  pushed_ = offset;
  for (const BodyRegister& reg : kBodyRegisters) {
    if (reg.strings_only && !needs.strings) continue;
    slots_.push_back({reg.number, static_cast<uint16_t>(offset), reg.user_regs_offset});
    offset += 8;
  }
  size_ = offset + kRedZone;
}

std::optional<uint16_t> Frame::OffsetOf(uint8_t number) const {
  for (const Slot& slot : slots_) {
    if (slot.number == number) return slot.offset;
  }
  return std::nullopt;
}

std::optional<uint8_t> NumberOf(lang::Reg reg) {
  const auto index = static_cast<size_t>(reg);
  if (index >= kNumbers.size()) return std::nullopt;
  return kNumbers[index];
}

}  // namespace probed::detour

#include "engine/detour/leave.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "engine/detour/string_routines.h"

namespace probed::detour {
namespace {

constexpr uint64_t kCarry = 1 << 0;
constexpr uint64_t kZero = 1 << 6;
constexpr uint64_t kOverflow = 1 << 11;
constexpr uint64_t kLahfFlags = 0xd5;  // SF ZF AF PF CF
static_assert((kLahfFlags & (kCarry | kZero)) == (kCarry | kZero));

bool LoadWord(arch::MemoryBus& memory, uint64_t address, uint64_t& word) {
  return memory.Load(address, std::as_writable_bytes(std::span(&word, 1)));
}

bool HoldsAt(const ProbeBlock& block, uint32_t offset, const user_regs_struct& regs) {
  return std::ranges::any_of(block.reserved, [&](const ProbeBlock::Reserved& range) {
    if (offset < range.begin || offset >= range.end) return false;
    return !range.tentative || offset != range.begin || (regs.eflags & kZero) != 0;
  });
}

// From the registers that the body keeps them in (body_registers.h).
Location::Reservation ReservationOf(const Detour& detour, const user_regs_struct& regs) {
  const uint64_t record = regs.r8;
  const uint64_t commit = regs.r10;
  const ring::Geometry& geometry = detour.memory.geometry;
  const uint64_t first = detour.memory.ring + geometry.records_offset(0);
  return {.cpu = static_cast<uint32_t>((record - first) / geometry.stride()),
          .position = (commit >> 16) * ring::kRecordAlignment,
          .length = (commit & 0xffff) * ring::kRecordAlignment};
}

// How far the stack pointer is below the program's: `otherwise` before the first step.
uint32_t BelowAt(std::span<const StackStep> steps, uint32_t offset, uint32_t otherwise) {
  for (const StackStep& step : steps) {
    if (step.offset <= offset) otherwise = step.below;
  }
  return otherwise;
}

bool RestoreFlags(const Detour& detour, uint64_t frame, user_regs_struct& regs,
                  arch::MemoryBus& memory) {
  uint64_t saved;
  if (!LoadWord(memory, frame + detour.status_flags, saved)) return false;
  regs.eflags &= ~(kLahfFlags | kOverflow);
  regs.eflags |= saved >> 8 & kLahfFlags;
  if ((saved & 1) != 0) regs.eflags |= kOverflow;
  return true;
}

bool UnwindBody(const Detour& detour, uint32_t offset, user_regs_struct& regs,
                arch::MemoryBus& memory) {
  const uint64_t stack = regs.rsp + BelowAt(detour.epilogue, offset, detour.save_area);
  const uint64_t frame = stack - detour.save_area;
  user_regs_struct original = regs;
  if (offset >= detour.flags_begin && offset < detour.flags_end) {
    if (!RestoreFlags(detour, frame, original, memory)) return false;
  }
  for (const SavedRegister& saved : detour.saved) {
    uint64_t value;
    if (!LoadWord(memory, frame + saved.stack_offset, value)) return false;
    std::memcpy(reinterpret_cast<std::byte*>(&original) + saved.user_regs_offset, &value,
                sizeof(value));
  }
  original.rsp = stack;
  regs = original;
  return true;
}

std::optional<uint64_t> ResumeOf(std::span<const FixUp> fix_ups, uint64_t start, uint64_t ip) {
  const auto fix_up = std::ranges::lower_bound(fix_ups, ip - start, {}, &FixUp::load);
  if (fix_up == fix_ups.end() || fix_up->load != ip - start) return std::nullopt;
  return start + fix_up->resume;
}

std::optional<uint32_t> OffsetIn(const Detour& detour, uint64_t buffer, uint64_t ip) {
  const uint64_t offset = ip - buffer;
  if (offset >= detour.code.size()) return std::nullopt;
  return static_cast<uint32_t>(offset);
}

}  // namespace

std::optional<Location> Locate(const Detour& detour, uint64_t buffer,
                               const user_regs_struct& regs) {
  const auto offset = OffsetIn(detour, buffer, regs.rip);
  if (!offset) return std::nullopt;
  Location location;
  if (*offset < detour.body) return location;
  location.phase = *offset < detour.displaced ? Phase::kBody : Phase::kDisplaced;
  for (const ProbeBlock& block : detour.blocks) {
    if (*offset >= block.end || *offset == block.committed) {
      ++location.recorded;
    } else if (HoldsAt(block, *offset, regs)) {
      location.reservation = ReservationOf(detour, regs);
    }
  }
  return location;
}

bool Unwind(const Detour& detour, uint64_t buffer, uint64_t site, user_regs_struct& regs,
            arch::MemoryBus& memory) {
  const auto offset = OffsetIn(detour, buffer, regs.rip);
  if (!offset || *offset >= detour.displaced) return false;
  if (*offset < detour.body) {
    regs.rsp += BelowAt(detour.prologue, *offset, 0);
  } else if (!UnwindBody(detour, *offset, regs, memory)) {
    return false;
  }
  regs.rip = site;
  return true;
}

bool InRoutines(uint64_t routines, uint64_t ip) {
  return routines != 0 && ip - routines < TheStringRoutines().code.size();
}

bool LeaveRoutine(uint64_t routines, user_regs_struct& regs, arch::MemoryBus& memory) {
  uint64_t behind_call;
  if (!InRoutines(routines, regs.rip) || !LoadWord(memory, regs.rsp, behind_call)) return false;
  regs.rip = behind_call - 1;
  regs.rsp += sizeof(behind_call);
  return true;
}

std::optional<uint64_t> FixUpAddress(const Detour& detour, uint64_t buffer, uint64_t ip) {
  if (!OffsetIn(detour, buffer, ip)) return std::nullopt;
  return ResumeOf(detour.fix_ups, buffer, ip);
}

std::optional<uint64_t> FixUpInRoutines(uint64_t routines, uint64_t ip) {
  if (!InRoutines(routines, ip)) return std::nullopt;
  return ResumeOf(TheStringRoutines().fix_ups, routines, ip);
}

}  // namespace probed::detour

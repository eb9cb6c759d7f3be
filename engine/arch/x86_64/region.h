#pragma once
// Out-of-line copies of several instructions in a row: what a jump at a site displaces. Pure.

#include <sys/user.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/arch/x86_64/instruction.h"
#include "engine/arch/x86_64/relocate.h"

namespace probed::arch {

// A copy of a run of instructions that ends by going on behind the last (or where it branches to).
struct RegionCopy {
  std::vector<uint8_t> code;
  // Every place where a thread may stop, ascending; the first is {0, original}. As CopyState, with
  // wider offsets.
  struct State {
    uint32_t offset = 0;
    uint64_t original_ip = 0;
    uint8_t pushed = 0;
    uint8_t instruction = 0;  // index in the region
  };
  std::vector<State> states;
};

// REGION_NOT_RELOCATABLE names the instruction that cannot be run out of line without a tracer, or
// a call whose return address would lie inside the region.
Result<RegionCopy> BuildRegionCopy(std::span<const Instruction> region, uint64_t original,
                                   uint64_t copy_address);

// As LeaveCopy, for any place in a region copy.
bool LeaveRegionCopy(const RegionCopy& copy, std::span<const Instruction> region, uint64_t original,
                     uint64_t copy_address, user_regs_struct& regs);

// The place in the copy where a thread that stands at `original_ip`, inside the region but not at
// its start, goes on. Nothing: no instruction starts there.
std::optional<uint64_t> EnterRegionCopy(const RegionCopy& copy, uint64_t copy_address,
                                        uint64_t original_ip);

}  // namespace probed::arch

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
  // Every place where a thread may stop, ascending; the first is {0, original}. A place behind the
  // last instruction still carries that instruction's index.
  using State = CopyState;
  std::vector<State> states;
};

// Within ±2 GiB of `original`, branches back to `original` go there, that is through the site
// again.
//
// REGION_NOT_RELOCATABLE names the instruction that cannot be run out of line without a tracer, is
// followed by instructions of the region although nothing runs into them, would lay a return
// address inside the region (a call, unless it is the last), refers to the middle of the region, or
// may be restarted by the kernel at its own place (syscall, unless it is the only one).
// DISPLACEMENT_OUT_OF_RANGE as BuildCopy.
Result<RegionCopy> BuildRegionCopy(std::span<const Instruction> region, uint64_t original,
                                   uint64_t copy_address);

// As LeaveCopy, for any place in a region copy. The place that it moves the thread to may lie in
// the middle of the region: whoever leaves a jump over the region must then step the thread on in
// the copy (EnterRegionCopy) before anything, such as the return from a signal handler, can bring
// it back there.
bool LeaveRegionCopy(const RegionCopy& copy, std::span<const Instruction> region, uint64_t original,
                     uint64_t copy_address, user_regs_struct& regs);

// The place in the copy where a thread that stands at `original_ip`, inside the region but not at
// its start, goes on. Nothing: no instruction starts there.
std::optional<uint64_t> EnterRegionCopy(const RegionCopy& copy, uint64_t copy_address,
                                        uint64_t original_ip);

}  // namespace probed::arch

#pragma once
// All fetch arguments of one probe as a small program: interpreted at a trap hit, later assembled
// to machine code for a detour. Immutable after compilation, so any thread may run it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/lang/fetch_context.h"

namespace probed::lang {

class FetchProgram;  // compiled arguments; only compile and run know its insides

struct FetchLimits {
  // Longest string or bytes value. The kernel dialect sets the kernel's own 4096-and-(fault) rule.
  uint32_t max_string = 4096;
  bool kernel_string_rules = false;  // over-long is (fault) and a record over 4072 bytes is dropped
};

// $arg1..$argN of SysV at a function's entry: registers, then stack slots past the return address.
// Unreadable slots are 0.
std::vector<uint64_t> CaptureEntryArguments(FetchContext& context, uint32_t count);

enum class FetchOutcome : uint8_t { kRecorded, kDropped };

// Runs `program`, replacing `payload` (payload.h). kDropped: too big for the kernel's buffer rule.
FetchOutcome Fetch(const FetchProgram& program, const FetchLimits& limits, FetchContext& context,
                   std::vector<std::byte>& payload);

}  // namespace probed::lang

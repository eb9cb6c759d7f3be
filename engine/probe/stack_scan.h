#pragma once
// Which code addresses a thread's stack may hold. Tracer thread only.

#include <cstdint>
#include <span>
#include <unordered_set>

#include "engine/tracee/stopped.h"

namespace probed::probe {

// Adds those of `wanted` (ascending) that stand in some aligned word of the stack that the thread
// runs on, at most kMaxScannedStack bytes from its stack pointer up. A signal frame keeps the
// interrupted ip in such a word (struct rt_sigframe).
inline constexpr size_t kMaxScannedStack = 1u << 20;
void FindOnStack(tracee::Stopped& stopped, std::span<const uint64_t> wanted,
                 std::unordered_set<uint64_t>& found);

}  // namespace probed::probe

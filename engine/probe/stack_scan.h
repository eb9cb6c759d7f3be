#pragma once
// Which code addresses the threads of a process may return to from signal handlers. Tracer thread.

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "engine/tracee/stopped.h"

namespace probed::probe {

// Those of `wanted` (ascending) that stand in some aligned word of the stacks that the threads, all
// of one process, run on, or were interrupted on: a signal frame (struct rt_sigframe) keeps the
// interrupted ip in such a word, and says where the stack was. Stacks are read from the stack
// pointer up to their end; of a mapping too large to be a stack, 1 MiB.
Result<std::unordered_set<uint64_t>> FindOnStacks(const std::vector<tracee::Stopped*>& threads,
                                                  std::span<const uint64_t> wanted);

}  // namespace probed::probe

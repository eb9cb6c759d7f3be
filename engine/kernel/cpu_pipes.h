#pragma once
// The files of an instance's per_cpu directory.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace probed::kernel {

struct CpuPipe {
  uint32_t number = 0;
  UniqueFd fd;
  std::string statistics;  // path
};

// `file` of every CPU, by their numbers, for reads that do not wait. KERNEL_RING_REFUSED: one
// cannot be opened.
Result<std::vector<CpuPipe>> OpenCpuPipes(const std::string& instance_directory,
                                          const std::string& file);

// "overrun: N" of a CPU's statistics: all that was ever overwritten unread.
std::optional<uint64_t> ReadOverrun(const std::string& statistics);

}  // namespace probed::kernel

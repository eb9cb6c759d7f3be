#pragma once
// The kernel's functions, as /proc/kallsyms has them. Read anew at each call; thread-safe.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace probed::kernel {

struct KernelFunction {
  uint64_t address = 0;  // 0: the kernel hides addresses from us
  uint64_t size = 0;     // up to the next symbol; 0: not known
  std::string name;
  std::string module;  // empty: the kernel itself
};

// In the order of addresses; what is no line of kallsyms is passed over.
std::vector<KernelFunction> ParseKallsyms(std::string_view text);
Result<std::vector<KernelFunction>> ReadFunctions(const std::string& kallsyms = "/proc/kallsyms");

}  // namespace probed::kernel

#include <cstring>

#include "engine/arch/x86_64/region.h"

namespace probed::arch {
Result<RegionCopy> BuildRegionCopy(std::span<const Instruction> region, uint64_t original,
                                   uint64_t copy_address) {
  RegionCopy copy;
  for (const Instruction& instruction : region) {
    copy.states.push_back({static_cast<uint32_t>(copy.code.size()), original + copy.code.size()});
    copy.code.insert(copy.code.end(), instruction.bytes.begin(),
                     instruction.bytes.begin() + instruction.length);
  }
  const uint64_t end = original + copy.code.size();
  const auto distance = static_cast<uint32_t>(end - (copy_address + copy.code.size() + 5));
  copy.states.push_back({static_cast<uint32_t>(copy.code.size()), end});
  copy.code.push_back(0xe9);
  copy.code.resize(copy.code.size() + 4);
  std::memcpy(&copy.code[copy.code.size() - 4], &distance, 4);
  return copy;
}
}  // namespace probed::arch

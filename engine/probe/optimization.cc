#include "engine/probe/optimization.h"

namespace probed::probe {

RemoteAddr Optimization::region_end() const {
  RemoteAddr end = site;
  for (const arch::Instruction& instruction : region)
    end = end + instruction.length;
  return end;
}

std::optional<uint8_t> Optimization::OriginalByte(RemoteAddr address) const {
  for (const CodePatch& patch : patches) {
    if (patch.Covers(address)) return patch.original[address - patch.address];
  }
  return std::nullopt;
}

}  // namespace probed::probe

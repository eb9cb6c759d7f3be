#include "engine/probe/optimization.h"

#include <algorithm>

namespace probed::probe {

std::vector<uint8_t> Optimization::Code() const {
  constexpr uint8_t kTrap = 0xcc;
  std::vector<uint8_t> code = detour.code;
  if (!returns.empty()) {
    code.resize(trampoline - buffer, kTrap);
    code.insert(code.end(), returning.code.begin(), returning.code.end());
  }
  code.resize(buffer_size, kTrap);
  return code;
}

RemoteAddr Optimization::region_end() const {
  RemoteAddr end = site;
  for (const arch::Instruction& instruction : region)
    end = end + instruction.length;
  return end;
}

bool Optimization::Serves(const std::vector<std::shared_ptr<Probe>>& wanted) const {
  return probes == wanted &&
         std::ranges::equal(probes, selections, [](const auto& probe, const Selection& made_for) {
           return probe->selection == made_for;
         });
}

std::optional<RemoteAddr> Optimization::island() const {
  if (patches.size() < 2) return std::nullopt;
  return patches.front().address;
}

std::optional<uint8_t> Optimization::OriginalByte(RemoteAddr address) const {
  for (const CodePatch& patch : patches) {
    if (patch.Covers(address)) return patch.original[address - patch.address];
  }
  return std::nullopt;
}

}  // namespace probed::probe

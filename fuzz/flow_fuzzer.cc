// Any bytes as a module: code and data halves, functions anywhere. Analysis must end, and what it
// allows must keep the rules.

#include <cstdlib>

#include "engine/arch/x86_64/flow.h"

namespace arch = probed::arch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr uint64_t kText = 0x401000, kData = 0x402000;
  if (size < 8 || size > 8192) return 0;
  std::span<const uint8_t> bytes(data + 4, size - 4);
  arch::ModuleImage image;
  image.position_independent = (data[0] & 1) != 0;
  auto text = bytes.first(bytes.size() / 2);
  image.segments = {{.address = kText, .bytes = text, .executable = true},
                    {.address = kData, .bytes = bytes.subspan(text.size()), .executable = false}};
  image.functions = {{kText, kText + data[1]}, {kText + data[2], kText + data[2] + 16 * data[3]}};
  auto flow = arch::FlowMap::Analyze(image);
  if (!flow.ok()) return 0;
  for (auto at = std::optional(kText); at.has_value(); at = (*flow)->NextStart(*at)) {
    arch::PatchPlan plan = (*flow)->Plan(*at);
    if (plan.tactic == arch::Tactic::kNone) continue;
    if (plan.region.empty() || plan.jump_length == 0) std::abort();
    // The bytes whose value changes.
    uint64_t written = plan.jump_length - plan.fixed_bytes;
    for (uint64_t inside = *at + 1; inside < *at + written; ++inside) {
      if ((*flow)->IsEntered(inside)) std::abort();
    }
  }
  return 0;
}

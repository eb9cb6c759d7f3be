#include "engine/arch/x86_64/flow.h"
#include "engine/arch/x86_64/flow/analysis.h"
#include "engine/arch/x86_64/flow/site_planner.h"

namespace probed::arch {

struct FlowMap::State {
  flow::Analysis analysis;
};

FlowMap::FlowMap(std::unique_ptr<const State> state) : state_(std::move(state)) {}
FlowMap::~FlowMap() = default;

Result<std::shared_ptr<const FlowMap>> FlowMap::Analyze(const ModuleImage& image) {
  PROBED_TRY(flow::Analysis analysis, flow::Analyze(image));
  auto state = std::make_unique<const State>(State{std::move(analysis)});
  return std::shared_ptr<const FlowMap>(new FlowMap(std::move(state)));
}

bool FlowMap::IsEntered(uint64_t address) const {
  return state_->analysis.IsEntered(address);
}

bool FlowMap::IsInDoubt(uint64_t address) const {
  const flow::Function* function = state_->analysis.FunctionAt(address);
  return function == nullptr || function->doubts != 0;
}

bool FlowMap::IsStart(uint64_t address) const {
  return state_->analysis.IsStart(address);
}

std::optional<uint64_t> FlowMap::NextStart(uint64_t address) const {
  const flow::Analysis& analysis = state_->analysis;
  auto index = analysis.code.IndexOf(address);
  if (!index.has_value()) return std::nullopt;
  uint64_t end = *index + analysis.code.From(address).size();
  uint64_t next = analysis.starts.FindFrom(*index + 1, end);
  return next == end ? std::nullopt : std::optional(address + (next - *index));
}

PatchPlan FlowMap::Plan(uint64_t address) const {
  return flow::SitePlanner(state_->analysis, address).Plan();
}

FlowMap::Totals FlowMap::totals() const {
  const flow::Analysis& analysis = state_->analysis;
  Totals totals{.functions = analysis.functions.size(),
                .instructions = analysis.starts.Count(),
                .entries = analysis.entries.Count()};
  for (const flow::Function& function : analysis.functions)
    totals.doubtful_functions += function.doubts != 0 ? 1 : 0;
  return totals;
}

}  // namespace probed::arch

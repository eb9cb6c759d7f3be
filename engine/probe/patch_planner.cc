#include "engine/probe/patch_planner.h"

#include <algorithm>
#include <utility>

#include "engine/probe/flow_source.h"

namespace probed::probe {
namespace {

// A few times the size of the code each.
constexpr size_t kMostFiles = 16;

}  // namespace

const FlowPlanner::Analysis& FlowPlanner::Analyze(const elf::File& file) {
  auto found = std::find_if(entries_.begin(), entries_.end(),
                            [&](const Entry& entry) { return entry.file == file.identity(); });
  if (found == entries_.end()) {
    entries_.push_front({.file = file.identity(), .analysis = AnalyzeFlow(file)});
    if (entries_.size() > kMostFiles) entries_.pop_back();
  } else {
    entries_.splice(entries_.begin(), entries_, found);
  }
  return entries_.front().analysis;
}

arch::PatchPlan FlowPlanner::Plan(const elf::File& file, LinkAddr address) {
  const Analysis& analysis = Analyze(file);
  if (analysis.ok()) return (*analysis)->Plan(address.value);
  arch::PatchPlan plan;
  plan.why = "its file cannot be analysed: " + analysis.error().message;
  return plan;
}

}  // namespace probed::probe

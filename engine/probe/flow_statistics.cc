#include "engine/probe/flow_statistics.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/arch/x86_64/relocate.h"
#include "engine/probe/displacement.h"
#include "engine/probe/judge.h"

namespace probed::probe {
namespace {

constexpr size_t kMaxInstructionLength = 15;

class PlanCounter {
 public:
  PlanCounter(const elf::File& file, const arch::FlowMap& flow) : file_(file), flow_(flow) {}

  void CountFunctions() {
    uint64_t last = 0;
    for (const elf::Symbol& symbol : file_.functions()) {  // by address
      if (!symbol.global || symbol.address.value == last) continue;
      last = symbol.address.value;
      ++ShareOf(last, flow_.Plan(last)).functions;
    }
  }

  void CountInstructions() {
    for (const elf::Segment& segment : file_.segments()) {
      if (!segment.executable) continue;
      for (auto at = std::optional(segment.address.value); at; at = flow_.NextStart(*at)) {
        arch::PatchPlan plan = flow_.Plan(*at);
        // What is between functions may be data.
        if (plan.rule == arch::Rule::kNoFunction) continue;
        ++ShareOf(*at, plan).instructions;
      }
    }
  }

  std::vector<PlanShare> Take() {
    std::vector<PlanShare> shares;
    for (const auto& [key, share] : shares_)
      shares.push_back(share);
    std::stable_sort(shares.begin(), shares.end(), [](const PlanShare& a, const PlanShare& b) {
      return a.instructions > b.instructions;
    });
    return shares;
  }

 private:
  using Key = std::tuple<Mechanism, arch::Tactic, std::string_view>;

  PlanShare& ShareOf(uint64_t address, const arch::PatchPlan& plan) {
    arch::Tactic tactic = plan.tactic;
    std::string_view rule = arch::RuleName(plan.rule);
    if (tactic != arch::Tactic::kNone) {
      if (auto against = RuleAgainstDisplacing(file_, plan.region); !against.empty()) {
        tactic = arch::Tactic::kNone;
        rule = against.name;
      }
    }
    Mechanism mechanism =
        tactic != arch::Tactic::kNone ? Mechanism::kOptimized : TrapMechanism({address});
    PlanShare& share = shares_[Key{mechanism, tactic, rule}];
    share.mechanism = mechanism;
    share.tactic = tactic;
    share.rule = rule;
    return share;
  }

  Mechanism TrapMechanism(LinkAddr address) const {
    auto offset = file_.ToOffset(address);
    if (!offset) return Mechanism::kNone;
    auto instruction = DecodeForProbe(file_.Bytes(*offset, kMaxInstructionLength), address.value);
    if (!instruction.ok()) return Mechanism::kNone;
    auto copy = arch::BuildCopy(*instruction, address.value, address.value);
    return copy.ok() && copy->boosted ? Mechanism::kBoosted : Mechanism::kUnoptimized;
  }

  const elf::File& file_;
  const arch::FlowMap& flow_;
  std::map<Key, PlanShare> shares_;
};

}  // namespace

std::vector<PlanShare> CountPlans(const elf::File& file, const arch::FlowMap& flow) {
  PlanCounter counter(file, flow);
  counter.CountFunctions();
  counter.CountInstructions();
  return counter.Take();
}

}  // namespace probed::probe

#pragma once
// Chooses the tactic for one site. Borrowed analysis; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/arch/x86_64/flow.h"
#include "engine/arch/x86_64/flow/analysis.h"

namespace probed::arch::flow {

class SitePlanner {
 public:
  SitePlanner(const Analysis& analysis, uint64_t address)
      : analysis_(analysis), address_(address) {}

  PatchPlan Plan();

 private:
  struct Refusal {
    Rule rule = Rule::kNone;
    std::string why;
  };

  // Nothing: allowed, and `plan` is filled.
  std::optional<Refusal> TryJump(PatchPlan& plan) const;
  std::optional<Refusal> TryShortJump(PatchPlan& plan) const;
  std::optional<Refusal> TryPunned(PatchPlan& plan) const;

  // Whole instructions from the site on, until they cover `bytes`, or less where only padding
  // follows.
  std::optional<Refusal> TakeRegion(uint64_t bytes, std::vector<Instruction>& region) const;
  std::optional<Refusal> TakeInstruction(uint64_t address, std::vector<Instruction>& region) const;
  std::optional<Refusal> CheckRegion(uint64_t bytes, const std::vector<Instruction>& region) const;
  std::optional<uint64_t> FindIsland() const;

  const Analysis& analysis_;
  uint64_t address_;
  const Function* function_ = nullptr;
};

}  // namespace probed::arch::flow

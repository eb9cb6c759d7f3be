#pragma once
// How the probes on all of a file's code would work.

#include <cstdint>
#include <string_view>
#include <vector>

#include "elf/file.h"
#include "engine/arch/x86_64/flow.h"
#include "engine/probe/mechanism.h"

namespace probed::probe {

// Places that come out the same.
struct PlanShare {
  Mechanism mechanism = Mechanism::kNone;  // kNone: no probe can stand there
  arch::Tactic tactic = arch::Tactic::kNone;
  std::string_view rule;      // against a plain jump: arch::RuleName, DisplacementRule::name
  uint64_t functions = 0;     // entries of exported functions, aliases once
  uint64_t instructions = 0;  // of all functions
};

// By number of instructions, most first. Plans every instruction: seconds for a large file.
std::vector<PlanShare> CountPlans(const elf::File& file, const arch::FlowMap& flow);

}  // namespace probed::probe

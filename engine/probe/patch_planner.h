#pragma once
// How a site of a file may become a jump, from the file alone. Implementations are used by one
// thread at a time.

#include <list>
#include <memory>

#include "base/result.h"
#include "elf/file.h"
#include "engine/arch/x86_64/flow.h"

namespace probed::probe {

class PatchPlanner {
 public:
  virtual ~PatchPlanner() = default;
  // Link addresses. Tactic kNone, with its rule, for what may not.
  virtual arch::PatchPlan Plan(const elf::File& file, LinkAddr address) = 0;
};

// By the analysis of the whole file, kept for those that were asked for last.
class FlowPlanner final : public PatchPlanner {
 public:
  arch::PatchPlan Plan(const elf::File& file, LinkAddr address) override;

 private:
  using Analysis = Result<std::shared_ptr<const arch::FlowMap>>;
  struct Entry {
    elf::FileIdentity file;
    Analysis analysis;
  };
  const Analysis& Analyze(const elf::File& file);

  std::list<Entry> entries_;  // the last used first
};

}  // namespace probed::probe

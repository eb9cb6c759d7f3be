#pragma once
// Where a probe goes in one process. Reads the process, changes nothing. Tracer thread only.

#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/probe/address_space.h"
#include "engine/probe/file_cache.h"
#include "engine/probe/process_state.h"

namespace probed::probe {

// A site to be: for a probe, or for a hook of the engine's own.
struct PlannedSite {
  RemoteAddr address;
  SitePlace place;
  arch::Instruction instruction;
  std::shared_ptr<Probe> probe;
  std::optional<Hook> hook;
  std::optional<RemoteAddr> reference_counter;
};

class Planner {
 public:
  explicit Planner(FileCache& files) : files_(files) {}

  // Appends a site for each executable mapping of the probe's places that does not carry it yet;
  // none when the file is not mapped. On error `plans` is as before.
  Status Plan(ProcessState& state, const AddressSpace& space, const std::shared_ptr<Probe>& probe,
              std::vector<PlannedSite>& plans);
  // In code that is in no file. Errors: generated_code.h, NOT_INSTRUCTION_BOUNDARY.
  Result<PlannedSite> PlanAddress(ProcessState& state, const AddressSpace& space,
                                  RemoteAddr address);
  Result<PlannedSite> PlanHook(ProcessState& state, RemoteAddr address, Hook hook);

 private:
  Status PlanPlace(ProcessState& state, const AddressSpace& space,
                   const std::shared_ptr<Probe>& probe, const elf::Module& module,
                   FileOffset offset, std::vector<PlannedSite>& found);
  Status PlanInMemory(ProcessState& state, const AddressSpace& space,
                      const std::shared_ptr<Probe>& probe, std::vector<PlannedSite>& plans);
  Result<PlannedSite> PlanAt(ProcessState& state, RemoteAddr address);
  std::string Describe(const ProcessState& state, const AddressSpace& space,
                       const elf::Module& module, FileOffset offset);

  FileCache& files_;
};

}  // namespace probed::probe

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
  OwnCode code;
  std::shared_ptr<Probe> probe;
  std::optional<Hook> hook;
  std::optional<RemoteAddr> reference_counter;
};

// The bytes at `address` as the program's own: breakpoints and jumps of ours are not shown.
OwnCode ReadOwnCode(const ProcessState& state, RemoteAddr address);

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
  // Of the place that is mapped at `site`: a file may be loaded twice, with data of its own each
  // time (dlmopen(3)).
  std::optional<RemoteAddr> FindReferenceCounter(const ProcessState& state,
                                                 const AddressSpace& space,
                                                 const elf::Module& module,
                                                 const lang::Definition& definition,
                                                 RemoteAddr site, FileOffset offset);
  // `place` may be left empty.
  Result<PlannedSite> PlanHook(ProcessState& state, RemoteAddr address, Hook hook, SitePlace place);

 private:
  Status PlanPlace(ProcessState& state, const AddressSpace& space,
                   const std::shared_ptr<Probe>& probe, const elf::Module& module,
                   FileOffset offset, std::vector<PlannedSite>& found);
  Status PlanIn(ProcessState& state, const AddressSpace& space, const std::shared_ptr<Probe>& probe,
                std::vector<PlannedSite>& plans);
  Status PlanInMemory(ProcessState& state, const AddressSpace& space,
                      const std::shared_ptr<Probe>& probe, std::vector<PlannedSite>& plans);
  Result<PlannedSite> PlanAt(ProcessState& state, RemoteAddr address);
  Result<std::vector<RemoteAddr>> FindPlaces(const ProcessState& state, const AddressSpace& space,
                                             const Probe& probe, const elf::Module& module,
                                             FileOffset offset);
  std::shared_ptr<const elf::File> Open(const ProcessState& state, const AddressSpace& space,
                                        const elf::Module& module, const Probe* probe);

  FileCache& files_;
};

}  // namespace probed::probe

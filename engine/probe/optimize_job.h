#pragma once
// Jumps and detours for the sites of one process, prepared away from the tracer thread: nothing
// here touches the process.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/detour/detour.h"
#include "engine/probe/address_space.h"
#include "engine/probe/file_cache.h"
#include "engine/probe/optimization.h"
#include "engine/probe/patch_planner.h"
#include "engine/probe/site.h"
#include "engine/tracee/code_arena.h"
#include "engine/tracee/code_reservation.h"

namespace probed::probe {

struct Candidate {
  RemoteAddr site;
  SitePlace place;
  std::vector<std::shared_ptr<Probe>> probes;  // only what is const may be looked at
  std::vector<Selection> selections;           // of each
  // Why it stays a breakpoint; empty as long as nothing speaks against a jump.
  std::string obstacle;

  arch::PatchPlan plan;
  std::vector<uint8_t> site_bytes;  // that the jump overwrites, as the file has them
  RemoteAddr island;                // kShortJump
  std::vector<uint8_t> island_bytes;
  std::vector<arch::Instruction> region;  // decoded where it runs
  tracee::Window window;                  // where the detour may start
  uint32_t detour_size = 0;               // what follows in the buffer is the trampoline
  uint32_t buffer_size = 0;
  RemoteAddr buffer;              // 0: not allocated
  std::vector<uint32_t> indices;  // of the probes
  std::shared_ptr<Optimization> optimization;

  bool possible() const { return obstacle.empty(); }
};

class OptimizeJob {
 public:
  OptimizeJob(event::TargetId for_target, uint64_t for_image, std::vector<Candidate> some)
      : target(for_target), image(for_image), candidates(std::move(some)) {}

  // Tactic and region of each, or an obstacle.
  void Plan(const AddressSpace& space, FileCache& files, PatchPlanner& planner);
  // Size of each, or an obstacle, once there is `memory`.
  void Measure();
  // Of each that is possible; SetBuffers() takes them as they were answered.
  std::vector<tracee::WantedCode> WantedBuffers() const;
  void SetBuffers(std::span<const tracee::WantedCode> buffers);
  // Code and jump of each that has a buffer, or an obstacle.
  void Assemble();
  bool HasWork() const;

  const event::TargetId target;
  const uint64_t image;  // ProcessState::image
  std::vector<Candidate> candidates;
  detour::SharedMemory memory;
  RemoteAddr daemon_trampoline;
};

}  // namespace probed::probe

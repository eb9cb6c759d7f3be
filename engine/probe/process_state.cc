#include "engine/probe/process_state.h"

#include <algorithm>
#include <utility>

namespace probed::probe {

namespace {

// Nobody has read what was only counted, as nobody reads a trap's record that nobody wants.
void Add(ProbeCounters& counters, const RingCounts& counts) {
  counters.hits += counts.hits();
  counters.recorded += counts.recorded + counts.counted + counts.lost + counts.oversize;
  counters.filtered += counts.filtered;
  counters.sampled_out += counts.sampled_out;
  counters.missed += counts.missed;
  counters.lost += counts.lost + counts.oversize;
}

}  // namespace

ThreadState& ThreadState::Of(tracee::Thread& thread) {
  if (thread.extension() == nullptr) thread.set_extension(std::make_unique<ThreadState>());
  return static_cast<ThreadState&>(*thread.extension());
}

ProcessState::ProcessState(tracee::Process& traced, std::shared_ptr<ProbeGroup> probe_group)
    : process(traced),
      id{.pid = traced.pid(), .start_ticks = traced.start_ticks()},
      group(std::move(probe_group)) {
  group->processes.push_back(this);
}

ProcessState::~ProcessState() {
  ForgetMemory();
  if (ring) ring->Close();
  std::erase(group->processes, this);
}

ProcessState* ProcessState::Of(tracee::Process& process) {
  return static_cast<ProcessState*>(process.extension());
}

void ProcessState::Release(const Optimization& optimization) {
  process.arena().Free(optimization.buffer, optimization.buffer_size);
  if (!ring) return;  // a child that has none of its own
  for (uint32_t index : optimization.indices)
    ring->Release(index);
}

void ProcessState::CountDetours() {
  if (!ring) return;
  for (Site* site : sites.Optimized()) {
    const Optimization& optimization = *site->optimization();
    uint64_t hits = 0;
    for (size_t i = 0; i < optimization.indices.size(); ++i) {
      RingCounts counts = ring->TakeCounts(optimization.indices[i]);
      Add(optimization.probes[i]->counters, counts);
      hits = std::max(hits, counts.hits());
    }
    site->CountHits(hits);
  }
}

void ProcessState::ForgetMemory() {
  for (Site* site : sites.Sorted())
    site->ForgetPatch();
  sites.Clear();
  trampoline = {};
  loading = false;
  stacks_migrate = false;
  unwinders_seen.clear();
  for (const auto& [tid, thread] : process.threads())
    thread->set_extension(nullptr);
}

}  // namespace probed::probe

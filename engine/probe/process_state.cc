#include "engine/probe/process_state.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

namespace probed::probe {

namespace {

// Nobody has read what was only counted, as nobody reads a trap's record that nobody wants.
void Add(ProbeCounters& counters, const RingCounts& counts) {
  counters.hits += counts.hits();
  counters.recorded += counts.recorded + counts.counted + counts.lost + counts.oversize;
  counters.filtered += counts.filtered;
  counters.sampled_out += counts.sampled_out;
  counters.missed += counts.unwound;
  counters.unwound += counts.unwound;
  counters.lost += counts.lost + counts.oversize + counts.dropped;
}

constexpr size_t kKeptOfATrampoline = 16;

// All but the beginning of a trampoline that returns have led to.
void FreeCode(ProcessState& state, const Optimization& optimization) {
  tracee::CodeArena& arena = state.process.arena();
  RemoteAddr trampoline = optimization.trampoline;
  if (!state.sites.IsRetired(trampoline)) {
    return arena.Free(optimization.buffer, optimization.buffer_size);
  }
  RemoteAddr rest = trampoline + kKeptOfATrampoline;
  arena.Free(optimization.buffer, trampoline - optimization.buffer);
  arena.Free(rest, optimization.buffer + optimization.buffer_size - rest);
}

// What a frame counts it counts for the first of its function's return probes.
void CountReturns(const Optimization& optimization, TargetRing& ring,
                  std::map<uint32_t, uint64_t>& waiting, std::vector<RingCounts>& counts) {
  size_t first = optimization.returns.front();
  uint32_t index = optimization.indices[first];
  uint64_t more = ring.AdvanceWaiting(index, waiting[index]);
  for (size_t i : optimization.returns) {
    counts[i].unwound = counts[first].unwound;
    counts[i].waiting = more;
  }
}

}  // namespace

ThreadState& ThreadState::Of(tracee::Thread& thread) {
  if (thread.extension() == nullptr) thread.set_extension(std::make_unique<ThreadState>());
  return static_cast<ThreadState&>(*thread.extension());
}

ProcessState::ProcessState(tracee::Process& traced, std::shared_ptr<ProbeGroup> probe_group,
                           std::shared_ptr<PatchJournal> patches)
    : process(traced),
      id{.pid = traced.pid(), .start_ticks = traced.start_ticks()},
      group(std::move(probe_group)),
      journal(patches, id.pid, id.start_ticks) {
  process.set_call_recorder(std::move(patches));
  group->processes.push_back(this);
}

void ProbeGroup::AwaitFilesAnew() {
  for (const auto& probe : probes) {
    if (probe->file && probe->sites == 0 && probe->counters.hits == 0) probe->was_armed = false;
  }
}

uint64_t ProcessState::NextImage() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
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
  FreeCode(*this, optimization);
  if (!ring) return;  // a child that has none of its own
  for (uint32_t index : optimization.indices)
    ring->Release(index);
}

void ProcessState::Retire(std::shared_ptr<const Optimization> optimization) {
  RemoteAddr returns_to = optimization->trampoline;
  if (sites.TrampolineAt(returns_to) != nullptr) {
    std::array<std::byte, kKeptOfATrampoline> breakpoints{};
    breakpoints.fill(std::byte{kBreakpointByte});
    (void)process.memory().Write(returns_to, breakpoints, id.pid);
    sites.RetireTrampoline(*optimization);
  }
  retired_.push_back(std::move(optimization));
}

void ProcessState::Forget(Site& site) {
  site.ForgetPatch();
  journal.Remove(JournalRecord::kSite, site.address());
  auto optimization = site.optimization();
  if (site.has_copy()) process.arena().Free(site.slot(), Site::kSlotSize);
  sites.Erase(site.address());
  if (!optimization) return;
  for (const CodePatch& patch : optimization->patches)
    journal.RemovePatch(patch.address, patch.original.size());
  auto& list = optimization->returns.empty() ? retired_ : orphans_;
  list.push_back(std::move(optimization));
}

void ProcessState::RetireOrphans(std::span<const RemoteAddr> ips) {
  if (!ring) return;
  CountDetours();
  const auto waiting = ring->shadows().CountPending();
  std::erase_if(orphans_, [&](const auto& orphan) {
    bool waits = waiting.contains(orphan->indices[orphan->returns.front()]);
    bool inside = std::any_of(ips.begin(), ips.end(), [&](RemoteAddr ip) {
      return ip >= orphan->buffer && ip < orphan->buffer + orphan->buffer_size;
    });
    if (waits || inside) return false;
    sites.ForgetTrampoline(*orphan);
    retired_.push_back(orphan);
    return true;
  });
}

void ProcessState::ReleaseRetired() {
  for (const auto& optimization : std::exchange(retired_, {}))
    Release(*optimization);
}

void ProcessState::CountDetours() {
  if (!ring) return;
  std::optional<std::map<uint32_t, uint64_t>> waiting;
  std::vector<RingCounts> counts;
  auto count = [&](const Optimization& optimization, Site* site) {
    counts.clear();
    for (uint32_t index : optimization.indices)
      counts.push_back(ring->TakeCounts(index));
    if (!optimization.returns.empty()) {
      if (!waiting) waiting = ring->shadows().CountPending();
      CountReturns(optimization, *ring, *waiting, counts);
    }
    std::optional<int64_t> hits;  // fewer than none when frames were taken over
    for (size_t i = 0; i < counts.size(); ++i) {
      Add(optimization.probes[i]->counters, counts[i]);
      auto own = static_cast<int64_t>(counts[i].hits());
      hits = std::max(hits.value_or(own), own);
    }
    if (site != nullptr) site->CountHits(static_cast<uint64_t>(hits.value_or(0)));
  };
  for (Site* site : sites.Optimized())
    count(*site->optimization(), site);
  for (const auto& optimization : retired_)
    count(*optimization, sites.Find(optimization->site));
  for (const auto& orphan : orphans_)
    count(*orphan, nullptr);
}

void ProcessState::MissReturns() {
  if (!ring) return;
  auto miss = [&](const Optimization& optimization) {
    if (optimization.returns.empty()) return;
    uint64_t waited = -ring->AdvanceWaiting(optimization.indices[optimization.returns.front()], 0);
    for (size_t i : optimization.returns)
      optimization.probes[i]->counters.missed += waited;
  };
  for (const Site* site : sites.Optimized())
    miss(*site->optimization());
  for (const auto& orphan : orphans_)
    miss(*orphan);
}

void ProcessState::ForgetMemory() {
  for (Site* site : sites.Sorted())
    site->ForgetPatch();
  sites.Clear();
  retired_.clear();
  orphans_.clear();
  journal.Clear();
  rescue = Rescue();
  trampoline = {};
  routines = {};
  kept_trap.reset();
  has_unseen_blocks = nobody_awaits_traps = false;
  runs_go.reset();
  loading = false;
  stacks_migrate = false;
  switches_contexts = false;
  watches_maps = false;
  maps_code_itself = false;
  unwinders_seen.clear();
  has_generated_sites = false;
  map_calls_seen.clear();
  for (const auto& [tid, thread] : process.threads())
    thread->set_extension(nullptr);
}

}  // namespace probed::probe

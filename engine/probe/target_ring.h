#pragma once
// The memory that a process with optimized sites shares with us (engine/ring/layout.h), and who
// owns which index of its tables. Tracer thread, but for what the Drainer calls.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/detour/detour.h"
#include "engine/detour/leave.h"
#include "engine/event/ring_source.h"
#include "engine/probe/shadow_table.h"
#include "engine/probe/thread_history.h"
#include "engine/ring/reader.h"
#include "engine/sys/robust_list.h"
#include "engine/tracee/shared_mapping.h"

namespace probed::probe {

// What a record with some index means.
struct ProbeOfIndex {
  event::ProbeId probe = 0;
  lang::ProbeKind kind = lang::ProbeKind::kEntry;
  uint64_t ip = 0;
  std::shared_ptr<const lang::EventSchema> schema;
};

// Since they were asked for last.
struct RingCounts {
  uint64_t recorded = 0;  // as far as the Drainer has counted
  uint64_t counted = 0;
  uint64_t filtered = 0;
  uint64_t sampled_out = 0;
  uint64_t unwound = 0;
  uint64_t lost = 0;
  uint64_t oversize = 0;
  uint64_t dropped = 0;  // of those recorded: given up unread
  uint64_t waiting = 0;  // returns waited for, modulo 2^64: it may have become fewer

  uint64_t hits() const {
    return recorded + counted + filtered + sampled_out + unwound + lost + oversize + waiting;
  }
};

class TargetRing final : public event::RingSource {
 public:
  // `bytes`: room for records, over all CPUs. TSC_UNRELIABLE, NO_FSGSBASE, and what
  // SharedMapping::Create refuses.
  static Result<std::shared_ptr<TargetRing>> Create(tracee::Stopped& stopped, event::TargetId id,
                                                    sys::RobustList& watch, uint64_t bytes);
  // For a forked child: memory of its own in the place of its parent's, indices as they are there.
  Result<std::shared_ptr<TargetRing>> Fork(tracee::Stopped& child, event::TargetId id) const;
  // Tracer thread, before the last reference goes: detours in the process do nothing any more.
  void Close();
  // No detour is left in the process, or in a copy of it.
  Status Unmap(tracee::Stopped& stopped) const;

  // With what detours share there (routines.h).
  detour::SharedMemory memory(RemoteAddr routines) const;
  ThreadHistory& threads() { return threads_; }
  ShadowTable& shadows() { return shadows_; }
  event::TargetId id() const { return id_; }

  // RING_INDICES_EXHAUSTED. Off until SetMode().
  Result<uint32_t> Claim(ProbeOfIndex probe);
  // The calls of the index that are left without a return are counted for `first`: another index
  // of the same function, or the same.
  void CountUnwoundBy(uint32_t index, uint32_t first);
  void SetMode(uint32_t index, ring::ProbeMode mode);
  // No thread is in the index's code any more, and Count() has seen what was recorded there. The
  // index is given away again when all of that was read.
  void Release(uint32_t index);
  RingCounts TakeCounts(uint32_t index);
  // Of SamplingState: so many hits are still left out. While no thread is in the index's code.
  uint64_t Skip(uint32_t index);
  void SetSkip(uint32_t index, uint64_t skip);
  // `now` returns are waited for on behalf of the index: how many more than before, modulo 2^64.
  uint64_t AdvanceWaiting(uint32_t index, uint64_t now);
  // The daemon has finished the hit that a thread had reserved this room for.
  void Abandon(const detour::Location::Reservation& reservation);

  // Called by the Drainer when a record came from a thread that the history does not know, until
  // that is taken. Set before the Drainer gets the ring.
  void set_on_unknown_thread(std::function<void()> callback) {
    on_unknown_thread_ = std::move(callback);
  }
  bool TakeUnknownThread() { return unknown_thread_.exchange(false); }

  ring::Reader& reader() override { return reader_; }
  std::vector<event::ProbeId> probes() const override;
  void Count(uint32_t probe) override;
  bool Lose(uint32_t probe) override;
  std::vector<event::ProbeLoss> TakeLosses() override;
  std::vector<event::UnwoundNotice> TakeUnwound() override;
  bool Decode(const ring::RawRecord& record, event::RingHit& hit) override;
  void OnReadUpTo(uint64_t tsc) override;
  void OnCorrupt(const Error& error) override;
  // Empty: the program has not damaged it, as far as was read.
  std::string corruption() const;

 private:
  struct Slot {
    ProbeOfIndex probe;
    uint64_t seen = 0;                   // records, ever
    uint64_t dropped = 0;                // of them, those that nobody will read
    uint64_t told = 0;                   // losses, ever
    std::optional<uint32_t> unwound_by;  // CountUnwoundBy()
    uint64_t unwound_told = 0;
    RingCounts taken;  // `recorded` counts records seen, `waiting` is as of now
    bool claimed = false;
  };

  TargetRing(event::TargetId id, ring::Geometry geometry, tracee::SharedMapping control,
             tracee::SharedMapping records);
  static Result<std::shared_ptr<TargetRing>> Map(tracee::Stopped& stopped, event::TargetId id,
                                                 sys::RobustList& watch, ring::Geometry geometry,
                                                 RemoteAddr control_at, RemoteAddr records_at);
  sys::RobustNode& armed_word();
  ring::ProbeControl& control_of(uint32_t index);
  ring::ProbeCounters& counters_of(uint32_t index);
  RingCounts Advance(uint32_t index);
  ThreadHistory::Identity FindThread(const ring::RawRecord& record);

  const event::TargetId id_;
  const std::string name_;  // when the ring was made
  const ring::Geometry geometry_;
  sys::RobustList* watch_ = nullptr;
  tracee::SharedMapping control_;
  tracee::SharedMapping records_;
  ThreadHistory threads_;
  ShadowTable shadows_;

  ring::Reader reader_;  // the Drainer's
  std::function<void()> on_unknown_thread_;
  std::atomic<bool> unknown_thread_ = false;

  mutable std::mutex mutex_;  // guards what follows
  struct Released {
    uint64_t tsc = 0;
    uint32_t index = 0;
  };
  void Free(uint32_t index);
  void TakeLoss(uint32_t index, std::vector<event::ProbeLoss>& losses);
  void TakeUnwoundOf(uint32_t index);

  std::vector<Slot> slots_;
  std::deque<Released> released_;  // by time
  std::set<uint32_t> free_;
  std::vector<event::ProbeLoss> untold_;  // of indices that have been freed
  std::vector<event::UnwoundNotice> untold_unwound_;
  uint64_t unwound_seen_ = 0;  // over all probes
  std::string corruption_;
};

}  // namespace probed::probe

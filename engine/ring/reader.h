#pragma once
// Drains the records of one process from shared memory, trusting none of it. One thread; the
// memory is the daemon's own mapping of the two memfds (layout.h) and outlives the reader.
//
// A full ring discards what is new, and the detour counts it. To overwrite the oldest record
// instead would be unsound here: a kernel's writer cannot be preempted, a program's can, and one
// that wakes up in the middle of a record that was overwritten meanwhile spoils a newer one. The
// rings are drained all the time and only bridge the moments until then; what ftrace's `overwrite`
// option chooses is the drop policy of a subscriber's queue (engine/event/hub.h).
//
// What was read is zeroed before its room is given back, so what a program can place in a record
// (a string, say) is never taken for a record of a later lap that is not written yet.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/ring/layout.h"
#include "engine/ring/record_reader.h"

namespace probed::ring {

class Reader final : public RecordReader {
 public:
  // The spans are at least as large as the geometry says, and aligned to pages.
  Reader(Geometry geometry, std::span<std::byte> control, std::span<std::byte> ring);

  // Hands over every record that is committed now, CPU by CPU, each CPU's in order, at most
  // `max_bytes` of each ring (and at least one record); then gives the room back. RING_CORRUPT:
  // what was found cannot have been written by a detour; nothing more may be read from this
  // process, and every later call says the same.
  Status Drain(uint64_t max_bytes, const Sink& sink) override;

  // Calls `sink` with the probe of every committed record that no earlier call has named, as far as
  // the first one that is still being written; reads little else and gives nothing back. Some ten
  // times cheaper than Drain, for whoever only counts. Errors as Drain.
  Status Scan(const ScanSink& sink) override;

  uint64_t backlog() const override;  // bytes reserved
  bool AllRead(uint32_t cpu) const override { return cpus_[cpu].all_read; }
  bool Blocked(uint32_t cpu) const override { return cpus_[cpu].blocked; }
  uint32_t cpu_count() const override { return geometry_.cpu_count; }
  // The process has ended: what is still uncommitted in front of others never will be. Hands over
  // what stands behind such holes where their length can be told.
  Status DrainRest(const Sink& sink) override;

  // Returns to the system the pages that bursts have used. Costs page faults later, so it is for
  // rings that are idle; nothing is lost when one is not.
  void ReleasePages() override;

 private:
  struct Cpu {
    uint64_t tail = 0;     // as published in RingTail
    uint64_t scanned = 0;  // what lies before it was named by Scan
    uint64_t used = 0;     // bytes from the ring's beginning that may have pages
    bool all_read = true;
    bool blocked = false;
  };
  struct Place {
    uint64_t position = 0;
    uint64_t length = 0;  // 0: not committed
  };

  std::byte* At(uint32_t cpu, uint64_t position) const;
  Result<uint64_t> LoadHead(uint32_t cpu);
  Place PlaceAt(uint32_t cpu, uint64_t position) const;
  static bool Fits(Place place, uint64_t head);
  Place NextBehindHole(uint32_t cpu, uint64_t position, uint64_t head) const;
  uint32_t ProbeAt(uint32_t cpu, Place place) const;
  Status Deliver(uint32_t cpu, Place place, const Sink& sink);
  Status ScanCpu(uint32_t cpu, const ScanSink& sink);
  Status DrainCpu(uint32_t cpu, uint64_t max_bytes, const Sink& sink);
  Status DrainRestOf(uint32_t cpu, const Sink& sink);
  void GiveBack(uint32_t cpu, uint64_t position);
  void PublishTail(uint32_t cpu, uint64_t position);
  template <class Function>
  void TakeToEnd(uint32_t cpu, Function while_taken);
  Error Corrupt(uint32_t cpu, std::string_view what);

  const Geometry geometry_;
  const std::span<std::byte> control_;
  const std::span<std::byte> ring_;
  std::vector<Cpu> cpus_;
  std::vector<std::byte> payload_;  // reused
  bool corrupt_ = false;
};

}  // namespace probed::ring

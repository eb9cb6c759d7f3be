#pragma once
// Brings together what stands in rings and what came by traps, in the order of time. Works in
// rounds; not thread-safe and without a clock of its own.
//
// A round gets a sample T of the clock, taken before it looks at anything, and publishes what was
// stamped up to T. That alone makes the order of each thread exact: were a record of a thread read
// and an earlier one of it not, then the earlier one was written after its ring was read, so the
// later one was stamped after T and waits. A ring that could not be read to its end, because a
// thread stands in the middle of a record or because there is too much, holds the process back to
// the time of what was read from it: what it still holds was reserved later.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/event/hub.h"
#include "engine/event/packed_hits.h"
#include "engine/event/ring_source.h"
#include "engine/ring/clock.h"

namespace probed::event {

using SourceId = uint64_t;

class Merger {
 public:
  explicit Merger(Hub& hub) : hub_(hub) {}

  void Add(SourceId id, std::shared_ptr<RingSource> source, const ring::ClockSample& now);
  // A hit that came by a trap, with the counter at its stop. Sources that are not there: ignored.
  void Hold(SourceId id, uint64_t tsc, const HitView& hit);

  struct Outcome {
    size_t published = 0;
    bool more = false;   // there is much more to read
    uint64_t up_to = 0;  // what was stamped until then is published
  };
  Outcome Round(const ring::ClockSample& now);
  // Tells every source of what stands in its rings; publishes nothing.
  void Count();
  // Tells the losses of every source now, and not with one of the next rounds; and the calls that
  // were left without a return.
  void TellLosses();
  // What is in the rings of this source is lost, as far as anybody reads.
  void Drop(SourceId id);
  // The process has ended, or no thread of it can record any more: publishes all of it.
  void Remove(SourceId id, const ring::ClockSample& now);

  // Of bursts; for when nothing comes.
  void ReleaseMemory();
  bool empty() const { return sources_.empty(); }

 private:
  struct Source;
  struct Ready {
    uint64_t tsc = 0;
    HitView hit;
    uint64_t lost = 0;
    const Source* source = nullptr;
  };
  struct Entry {
    uint64_t tsc = 0;
    size_t offset = 0;  // in `held`
    uint64_t lost = 0;  // not 0: there is no hit, but so many were lost here
  };
  struct Lane {
    uint64_t read_up_to = 0;        // no unread record's thread is behind this
    uint64_t blocked_since_ns = 0;  // by the record in front; 0: it is not
  };
  struct Source {
    std::shared_ptr<RingSource> ring;
    std::vector<Lane> lanes;  // for each CPU
    bool corrupt = false;
    bool has_news = false;  // was read from since its losses were told
    PackedHits held;
    std::vector<Entry> entries;
    size_t carried = 0;  // of them, those from before this round: read before its `now` was taken
  };
  void Take(Source& source, const ring::RawRecord& record);
  void Drain(Source& source, const ring::ClockSample& now);
  static void NoteProgress(Source& source, const ring::ClockSample& now);
  void NoteCorrupt(Source& source, const Error& error);
  static uint64_t LimitOf(const Source& source, const ring::ClockSample& now);
  void Gather(const Source& source, uint64_t limit);
  void SortReady();
  static void KeepAfter(Source& source, uint64_t limit);
  size_t PublishReady();
  void PublishViews();
  void PublishLoss(const Ready& loss);
  void TellLosses(Source& source, uint64_t now_ns);
  void TellLossesNowAndThen(uint64_t now_ns);
  void TellUnwound(Source& source);

  Hub& hub_;
  ring::TscClock clock_;
  uint64_t losses_told_ns_ = 0;
  bool wanted_ = true;  // in this round; without a reader, records are counted and given back
  std::unordered_map<SourceId, Source> sources_;
  std::vector<Ready> ready_;    // of this round
  std::vector<HitView> views_;  // the same in order
};

}  // namespace probed::event

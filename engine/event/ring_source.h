#pragma once
// Whose hits come through rings, a process or the kernel, as the thread that drains them sees it.

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/event/packed_hits.h"
#include "engine/ring/record_reader.h"

namespace probed::event {

// A ring's record as an event. `payload` may be a part of the raw record's. `schema` is shared: the
// probe may be deleted meanwhile, whatever a hostile record says. Of the header everything but
// sizes, sequence and clocks.
struct RingHit {
  lang::PackedHit header;
  std::span<const std::byte> payload;
  SchemaPtr schema;
};

// So many records of a probe that nobody will read.
struct ProbeLoss {
  ProbeId probe = 0;
  TargetId target;
  uint64_t lost = 0;
};

// All calls come from whichever thread runs a round of the Drainer, one at a time; none may
// block, nor call the Drainer.
class RingSource {
 public:
  virtual ~RingSource() = default;

  virtual ring::RecordReader& reader() = 0;
  // Whether its records may be of threads that others record too: then nobody's hits are published
  // before its own that were earlier. One source at most.
  virtual bool ConcernsAll() const { return false; }
  // Who is told of RawRecord::lost: whoever wants hits of one of these.
  virtual std::vector<ProbeId> probes() const { return {}; }
  // A record of this probe, if there is such a one, was found: once for each, before it is decoded.
  virtual void Count(uint32_t probe) = 0;
  // A record that was counted is given up unread. False: then TakeLosses() will not have it.
  virtual bool Lose(uint32_t probe) {
    (void)probe;
    return false;
  }
  // What did not fit into the rings, and what was given up, since this was asked last.
  virtual std::vector<ProbeLoss> TakeLosses() { return {}; }
  // Calls that were found left without a return, since this was asked last. Cheap if there are
  // none.
  virtual std::vector<UnwoundNotice> TakeUnwound() { return {}; }
  // False: of a probe that is not there; nothing is published. Trusts nothing of the record.
  virtual bool Decode(const ring::RawRecord& record, RingHit& hit) = 0;
  // Whatever is still to be decoded was recorded by a thread that was alive later than `tsc`.
  virtual void OnReadUpTo(uint64_t tsc) = 0;
  // The rings are damaged, or cannot be read; nothing more is read from them.
  virtual void OnCorrupt(const Error& error) = 0;
};

}  // namespace probed::event

#pragma once
// A process whose hits come through rings, as the thread that drains them sees it.

#include <cstddef>
#include <span>

#include "base/result.h"
#include "engine/event/packed_hits.h"
#include "engine/ring/reader.h"

namespace probed::event {

// A ring's record as an event. `payload` may be a part of the raw record's. `schema` is shared: the
// probe may be deleted meanwhile, whatever a hostile record says. Of the header everything but
// sizes, sequence and clocks.
struct RingHit {
  lang::PackedHit header;
  std::span<const std::byte> payload;
  SchemaPtr schema;
};

// All calls come from whichever thread runs a round of the Drainer, one at a time; none may
// block, nor call the Drainer.
class RingSource {
 public:
  virtual ~RingSource() = default;

  virtual ring::Reader& reader() = 0;
  // A record of this probe, if there is such a one, was found: once for each, before it is decoded.
  virtual void Count(uint32_t probe) = 0;
  // False: of a probe that is not there; nothing is published. Trusts nothing of the record.
  virtual bool Decode(const ring::RawRecord& record, RingHit& hit) = 0;
  // Whatever is still to be decoded was recorded by a thread that was alive later than `tsc`.
  virtual void OnReadUpTo(uint64_t tsc) = 0;
  // The target has damaged its rings; nothing more is read from them.
  virtual void OnCorrupt(const Error& error) = 0;
};

}  // namespace probed::event

#pragma once
// Drains the records of one process from shared memory, trusting none of it. One thread; the
// memory is the daemon's own mapping of the two memfds (layout.h) and outlives the reader.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/ring/layout.h"

namespace probed::ring {

// One record as read; `payload` is a copy's view that is valid during the callback only.
struct RawRecord {
  uint32_t cpu = 0;
  uint32_t probe = 0;  // below kMaxProbes, nothing else is known about it
  uint64_t tsc = 0;
  uint64_t thread = 0;
  std::span<const std::byte> payload;
};

class Reader {
 public:
  Reader(Geometry geometry, std::span<std::byte> control, std::span<std::byte> ring);

  // Hands over every record that is committed now, CPU by CPU, each CPU's in order, at most
  // `max_bytes` of each ring; then gives the room back. RING_CORRUPT: what was found cannot have
  // been written by a detour; nothing more may be read from this process.
  Status Drain(uint64_t max_bytes, const std::function<void(const RawRecord&)>& sink);

  // Bytes reserved and not yet read, over all rings; a hint for how often to poll.
  uint64_t backlog() const;
  // The process has ended: what is still uncommitted in front of others never will be. Hands over
  // what stands behind such holes where their length can be told.
  Status DrainRest(const std::function<void(const RawRecord&)>& sink);
};

}  // namespace probed::ring

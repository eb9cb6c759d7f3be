#pragma once
// Evaluates a probe at a hit and publishes the record. Tracer thread only.

#include <cstddef>
#include <span>

#include "base/clock.h"
#include "engine/event/drainer.h"
#include "engine/probe/process_state.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {

// What a record says about the place of a hit.
struct HitPlace {
  uint64_t ip = 0;        // entry: the probed address; return: the real return address
  uint64_t function = 0;  // the probed address
  uint64_t tsc = 0;
  Timestamps time;
};

class Recorder {
 public:
  explicit Recorder(event::Drainer& drainer) : drainer_(drainer) {}

  void Record(Probe& probe, const HitPlace& place, ProcessState& state, pid_t tid,
              StoppedContext& context);

 private:
  static bool Passes(const Probe& probe, const HitPlace& place, pid_t tid, StoppedContext& context,
                     std::span<const std::byte> payload);

  event::Drainer& drainer_;
};

}  // namespace probed::probe

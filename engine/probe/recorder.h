#pragma once
// Evaluates a probe at a hit and publishes the record. Tracer thread only.

#include <cstddef>
#include <span>

#include "base/clock.h"
#include "engine/event/hub.h"
#include "engine/probe/process_state.h"
#include "engine/probe/stopped_context.h"

namespace probed::probe {

// What a record says about the place of a hit.
struct HitPlace {
  uint64_t ip = 0;        // entry: the probed address; return: the real return address
  uint64_t function = 0;  // the probed address
  Timestamps time;
};

class Recorder {
 public:
  explicit Recorder(event::Hub& hub) : hub_(hub) {}

  void Record(Probe& probe, const HitPlace& place, ProcessState& state, pid_t tid,
              StoppedContext& context);
  event::Hub& hub() { return hub_; }

 private:
  static bool Passes(const Probe& probe, const HitPlace& place, pid_t tid, StoppedContext& context,
                     std::span<const std::byte> payload);

  event::Hub& hub_;
};

}  // namespace probed::probe

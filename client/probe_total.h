#pragma once
// What became of a definition's hits: of one probe, or of its probes in many targets together.
// Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "probed/v1/probes.pb.h"

namespace probed::client {

struct ProbeTotal {
  v1::Probe probe;
  uint64_t shown = 0;    // events of it that we have written
  bool deleted = false;  // by somebody else, so that its counters are not known
  bool orphan = false;   // nor are they where the daemon has ended
};

// Adds what another target says of the same definition, or else a new one.
void AddTo(std::vector<ProbeTotal>& totals, const ProbeTotal& more);

// Of what was recorded and is not shown, what the daemon has lost, perhaps to other readers only;
// the rest came when we wanted no more.
uint64_t LostOf(const ProbeTotal& total);

// "p:GROUP/EVENT  hits N  shown N  missed N (N unwound)  lost N", then what there is of "filtered
// N", "sampled out N", "not shown N": all the others add up to the hits. `where` stands behind the
// name. Of one whose counters are not known there is what was shown alone.
std::string DescribeTotal(const ProbeTotal& total, const std::string& where);

}  // namespace probed::client

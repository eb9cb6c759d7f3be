#pragma once
// How a site works, and what is counted about a probe: the words shared with the facade.

#include <cstdint>
#include <string>
#include <string_view>

namespace probed::probe {

enum class Mechanism : uint8_t { kNone, kUnoptimized, kBoosted, kOptimized, kKernel };
std::string_view MechanismName(Mechanism mechanism);  // "unoptimized", "boosted", ...

enum class ProbeState : uint8_t { kPending, kArmed, kDisabled, kGone };

struct ProbeCounters {
  // hits = recorded + filtered + sampled_out + missed, once no return is waited for.
  uint64_t hits = 0;  // entries into the probe, as uprobe_profile counts
  uint64_t recorded = 0;
  uint64_t filtered = 0;
  uint64_t sampled_out = 0;  // left out by sampling, of those that passed the filter
  uint64_t missed = 0;       // return probes: calls whose return was not seen
  // Of those missed: calls that the program has left without a return, by an exception, longjmp(3)
  // or the end of their thread (unwound.h). The others were over maxactive, were given up by us, or
  // still went on at the end.
  uint64_t unwound = 0;
  // Of those recorded: too big for the kernel dialect's buffer, or dropped before some subscriber
  // read it.
  uint64_t lost = 0;
};

struct DetachReport {
  uint32_t sites_restored = 0;
  uint32_t bytes_verified = 0;
  uint32_t returns_restored = 0;  // hijacked return addresses put back
  std::string warning;            // empty when every byte was verified
};

}  // namespace probed::probe

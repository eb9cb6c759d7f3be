#pragma once
// Which of the hits that pass a probe's filter are recorded: one in so many, and no more than so
// many in a second. The same rule in the daemon and, as machine code, in a target
// (detour/sampling_code.h); its state is two words. Pure.

#include <cstdint>

namespace probed::ring {

struct Sampling {
  uint32_t every = 1;       // one in `every`, the first one included
  uint32_t per_second = 0;  // of those; 0: no limit

  bool is_needed() const { return every > 1 || per_second > 0; }
  bool operator==(const Sampling&) const = default;
};

// All zero at first. Whatever a target writes there does no more than change what it records.
struct SamplingState {
  uint64_t skip = 0;    // hits to leave out before the next; negative as none
  uint64_t window = 0;  // a second's number << 32 | recorded in it
};

// `second`: of any clock that goes on, cut to 32 bits. One that has passed counts as the present.
constexpr bool Take(const Sampling& sampling, SamplingState& state, uint32_t second) {
  if (sampling.every > 1) {
    const bool is_turn = static_cast<int64_t>(state.skip) <= 0;
    state.skip = is_turn ? sampling.every - 1 : state.skip - 1;
    if (!is_turn) return false;
  }
  if (sampling.per_second == 0) return true;
  const auto present = static_cast<uint32_t>(state.window >> 32);
  if (static_cast<int32_t>(second - present) > 0) {
    state.window = uint64_t{second} << 32 | 1;
    return true;
  }
  if (static_cast<uint32_t>(state.window) >= sampling.per_second) return false;
  ++state.window;
  return true;
}

}  // namespace probed::ring

#pragma once
// The memory that a target with optimized probes shares with the daemon: plain structs, agreed
// between generated code (engine/detour) and the reader (reader.h). Two memfds per process:
//
//   control  written by the daemon only, mapped read-only in the target and sealed against more:
//            ControlHeader, tails[cpu_count], ProbeControl[kMaxProbes], ThreadEntry[kThreadEntries]
//   ring     written by the target: ProbeCounters[kMaxProbes], then for each CPU a RingHeader, then
//            for each CPU `ring_bytes` of records and a margin, then ShadowStack[kMaxShadowStacks]
//
// What is in the ring memfd is hostile input. Little-endian, naturally aligned.

#include <cstddef>
#include <cstdint>

#include "engine/ring/sampling.h"

namespace probed::ring {

inline constexpr uint32_t kMaxProbes = 1u << 16;  // (site, probe) pairs of one process at a time
inline constexpr uint32_t kRecordAlignment = 8;
inline constexpr uint32_t kMaxRecordBytes = 65535 * kRecordAlignment;  // what `commit` can say

// Begins the control memfd. The first words are one node of the tracer thread's robust futex list
// (set_robust_list(2)): the kernel marks `armed` when that thread dies, by whatever cause.
struct alignas(64) ControlHeader {
  uint64_t robust_next = 0;
  uint32_t armed = 0;  // the tracer's tid; no bit of kArmedMask is left once it is gone
  uint32_t reserved = 0;
};
inline constexpr uint32_t kArmedMask = 0x3fffffff;  // FUTEX_TID_MASK

// How much is read of each ring: bytes since the start, as RingHeader::head. Daemon only.
struct alignas(64) RingTail {
  uint64_t tail = 0;
};

enum ProbeMode : uint32_t {
  kModeOff = 0,     // nothing
  kModeCount = 1,   // only ProbeCounters::counted
  kModeRecord = 2,  // a record for each hit
};

struct ProbeControl {
  uint32_t mode = kModeOff;
  uint32_t reserved = 0;
};

// One per (site, probe), only ever added to, atomically.
struct alignas(64) ProbeCounters {
  uint64_t counted = 0;      // hits in kModeCount
  uint64_t filtered = 0;     // dropped by the filter
  uint64_t sampled_out = 0;  // and then by sampling
  uint64_t unwound = 0;      // return probes: calls whose frame has died
  uint64_t lost = 0;         // the ring was full
  uint64_t oversize = 0;     // recorded and lost: over the kernel dialect's record limit
  SamplingState sampling;
};

struct alignas(128) RingHeader {
  // Bytes reserved since the start; a multiple of 8. Advanced by compare-and-exchange, so a thread
  // that is preempted or moved to another CPU meanwhile does no harm. Read after RingTail::tail:
  // then it is not behind it, and `head + length - tail <= ring_bytes` says that there is room.
  // The reader advances it too, to skip a part of an empty ring.
  uint64_t head = 0;
  // In the first alone, over all probes: whether to look at ProbeCounters::unwound, behind which it
  // is.
  uint64_t unwound = 0;
};

// A record never wraps: it may reach beyond the end of its ring into a margin. Positions count on
// as if it had wrapped, so as many bytes at the ring's beginning stay unused in the next lap.
inline constexpr uint64_t kMarginBytes = 512u << 10;
static_assert(kMarginBytes >= kMaxRecordBytes);
inline constexpr uint32_t kAbandonedRecord = 0xfffffffe;  // the daemon finished this hit itself

struct RecordHeader {
  // Written last: position / 8 << 16 | length / 8, where position is `head` at the reservation and
  // length counts header, payload and rounding. Any other value: not written yet.
  uint64_t commit = 0;
  uint64_t tsc = 0;
  uint64_t thread = 0;  // the thread's fs base
  uint32_t probe = 0;   // index of its ProbeControl and ProbeCounters
  uint32_t payload_bytes = 0;
};
static_assert(sizeof(RecordHeader) == 32);

constexpr uint64_t CommitWord(uint64_t position, uint64_t length) {
  return position / kRecordAlignment << 16 | length / kRecordAlignment;
}

// A return probe's payload is preceded by the real return address (counted in payload_bytes).

// Return probes. A thread finds its shadow stack in a hash table that the daemon fills: open
// addressing from ThreadHash(), the next entry after the last being the first. A thread that is not
// there asks the daemon. The table is never full.
inline constexpr uint32_t kThreadHashBits = 13;
inline constexpr uint32_t kThreadEntries = 1u << kThreadHashBits;
inline constexpr uint32_t kMaxShadowStacks = kThreadEntries / 2;

struct ThreadEntry {
  static constexpr uint64_t kFree = 0;     // a search ends here
  static constexpr uint64_t kRemoved = 1;  // and goes on here
  uint64_t thread = kFree;                 // fs base
  uint64_t shadow_stack = 0;               // offset of its ShadowStack in the ring memfd
};

inline constexpr uint64_t kThreadHashFactor = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
constexpr uint32_t ThreadHash(uint64_t thread) {
  return static_cast<uint32_t>(thread * kThreadHashFactor >> (64 - kThreadHashBits));
}

inline constexpr uint32_t kShadowFrames = 64;  // as the kernel's MAX_URETPROBE_DEPTH
inline constexpr uint32_t kShadowArguments = 6;

// One hijacked return. The frame is alive while the word at `slot` is `trampoline`; dead ones are
// taken off when they are found on top, so others may linger below.
struct ShadowFrame {
  uint64_t slot = 0;        // address of the stack word that held the return address; 0: a gap
  uint64_t next = 0;        // what it held: of a tail call, the trampoline of the frame below
  uint64_t caller = 0;      // the real return address behind all of them
  uint64_t trampoline = 0;  // what it holds now
  uint64_t probe = 0;       // the function's first return probe, whose `unwound` counts for all
  uint64_t arguments[kShadowArguments] = {};  // $arg1... at entry
};

// Written by its own thread only, or by the daemon while that is stopped; frames that return in
// another thread the daemon makes gaps at any time.
struct alignas(64) ShadowStack {
  uint64_t depth = 0;  // frames in use; grows after the frame is written, before the slot is
  ShadowFrame frames[kShadowFrames] = {};
};

// Sizes and offsets that follow from the number of CPUs and the size of each ring.
struct Geometry {
  uint32_t cpu_count = 0;   // rings, a power of two; CPU numbers count modulo this
  uint64_t ring_bytes = 0;  // power of two, multiple of the page size

  constexpr uint64_t tail_offset(uint32_t cpu) const {
    return sizeof(ControlHeader) + cpu * sizeof(RingTail);
  }
  constexpr uint64_t control_offset(uint32_t probe) const {
    return tail_offset(cpu_count) + probe * sizeof(ProbeControl);
  }
  constexpr uint64_t thread_offset(uint32_t entry) const {
    return control_offset(kMaxProbes) + entry * sizeof(ThreadEntry);
  }
  constexpr uint64_t control_bytes() const { return RoundToPage(thread_offset(kThreadEntries)); }
  constexpr uint64_t counters_offset(uint32_t probe) const { return probe * sizeof(ProbeCounters); }
  constexpr uint64_t head_offset(uint32_t cpu) const {
    return counters_offset(kMaxProbes) + cpu * sizeof(RingHeader);
  }
  constexpr uint64_t unwound_offset() const {
    return head_offset(0) + offsetof(RingHeader, unwound);
  }
  constexpr uint64_t records_offset(uint32_t cpu) const {
    return RoundToPage(head_offset(cpu_count)) + cpu * stride();
  }
  constexpr uint64_t stride() const { return ring_bytes + kMarginBytes; }
  constexpr uint64_t shadow_offset(uint32_t stack) const {
    return records_offset(cpu_count) + stack * sizeof(ShadowStack);
  }
  constexpr uint64_t ring_area_bytes() const {
    return RoundToPage(shadow_offset(kMaxShadowStacks));
  }

 private:
  static constexpr uint64_t RoundToPage(uint64_t bytes) { return (bytes + 4095) & ~uint64_t{4095}; }
};

}  // namespace probed::ring

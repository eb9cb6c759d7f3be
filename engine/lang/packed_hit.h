#pragma once
// One hit as bytes, the same from the engine's queues to a client: this header, the payload
// (payload.h), zeroes up to a multiple of 8. Little-endian, no padding. Records follow each other.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace probed::lang {

struct PackedHit {
  uint32_t record_bytes = 0;  // all of the record; a multiple of 8
  uint32_t payload_bytes = 0;
  uint64_t sequence = 0;
  uint64_t probe = 0;  // what an event schema of the stream is known by
  uint64_t monotonic_ns = 0;
  int64_t wall_ns = 0;
  uint64_t ip = 0;            // entry: probed address; return: real return address
  uint64_t function = 0;      // return: address of the probed function
  uint64_t target_start = 0;  // with `pid`: the process instance
  int32_t pid = 0;
  int32_t tid = 0;
  uint16_t cpu = 0;
  uint8_t flags = 0;  // of the kernel's events: common_flags and common_preempt_count
  uint8_t preempt_count = 0;
  uint32_t schema = 0;  // the engine's own; of no meaning to a client
  char comm[16] = {};   // at most 15 bytes, the rest is 0
};
static_assert(sizeof(PackedHit) == 96);

constexpr uint32_t PackedBytes(size_t payload_bytes) {
  return static_cast<uint32_t>((sizeof(PackedHit) + payload_bytes + 7) & ~size_t{7});
}

// Walks records that come from elsewhere: Next ends at the first one that is not whole.
class PackedHitReader {
 public:
  struct Hit {
    PackedHit header;
    std::span<const std::byte> payload;  // in the bytes that are read
  };

  explicit PackedHitReader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::optional<Hit> Next();
  bool at_end() const { return rest_.empty(); }  // false after Next ended: the bytes are damaged

 private:
  std::span<const std::byte> rest_;
};

}  // namespace probed::lang

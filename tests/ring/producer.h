#pragma once
// What a detour does, by hand: reserves, fills and commits records of a shared ring. Written
// against layout.h alone, so that the reader is not judged by itself. Thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/unique_fd.h"
#include "engine/ring/layout.h"

namespace probed::ring {

// A memfd and its mapping.
class SharedMapping {
 public:
  explicit SharedMapping(size_t bytes);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  size_t allocated() const;  // bytes that the system holds for it

 private:
  UniqueFd fd_;
  std::span<std::byte> bytes_;
};

class Producer {
 public:
  struct Slot {
    uint64_t position = 0;
    uint64_t length = 0;
    RecordHeader* header = nullptr;
  };

  Producer(Geometry geometry, std::span<std::byte> control, std::span<std::byte> ring)
      : geometry_(geometry), control_(control), ring_(ring) {}

  struct Hit {
    uint32_t probe = 0;
    uint64_t thread = 0;
    uint64_t tsc = 0;
    std::span<const std::byte> payload;
  };

  // False, and ProbeCounters::lost is one more: there is no room.
  bool Record(uint32_t cpu, const Hit& hit);

  // The parts of Record, for threads that stop in between.
  std::optional<Slot> Reserve(uint32_t cpu, uint64_t payload_bytes);
  void Fill(const Slot& slot, const Hit& hit);
  void Commit(const Slot& slot);

  ProbeCounters& counters(uint32_t probe);
  uint64_t& head(uint32_t cpu);
  std::byte* At(uint32_t cpu, uint64_t position);

 private:
  const Geometry geometry_;
  const std::span<std::byte> control_;
  const std::span<std::byte> ring_;
};

}  // namespace probed::ring

#pragma once
// Hits one after the other in one piece of memory, as lang::PackedHit. What is moved through the
// engine in bulk: no allocation for each hit. Not thread-safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/event/event.h"
#include "engine/lang/packed_hit.h"

namespace probed::event {

using SchemaPtr = std::shared_ptr<const lang::EventSchema>;

// A hit in a PackedHits, valid while that is not changed.
struct HitView {
  lang::PackedHit* header = nullptr;
  const SchemaPtr* schema = nullptr;

  TargetId target() const { return {header->pid, header->target_start}; }
  std::span<const std::byte> payload() const {
    return {reinterpret_cast<const std::byte*>(header + 1), header->payload_bytes};
  }
};

class PackedHits {
 public:
  // Sets the header's sizes and its `schema`.
  void Append(const lang::PackedHit& header, std::span<const std::byte> payload,
              const SchemaPtr& schema);
  void Append(const HitRecord& hit);
  void Append(const HitView& hit) { Append(*hit.header, hit.payload(), *hit.schema); }

  bool empty() const { return begin_ == bytes_.size(); }
  size_t bytes() const { return bytes_.size() - begin_; }
  HitView front() const { return At(begin_); }
  void PopFront() { begin_ += front().header->record_bytes; }
  // Where the record behind those of now will stand; valid until the first PopFront.
  size_t end_offset() const { return bytes_.size(); }
  HitView At(size_t offset) const;
  void Clear();

  template <class Function>
  void ForEach(Function function) const {
    for (size_t offset = begin_; offset < bytes_.size();) {
      const HitView hit = At(offset);
      offset += hit.header->record_bytes;
      function(hit);
    }
  }

  // The records' bytes; nothing is left.
  std::string TakeBytes();

 private:
  uint32_t SchemaIndex(const SchemaPtr& schema);

  std::string bytes_;
  size_t begin_ = 0;
  std::vector<SchemaPtr> schemas_;     // keeps them alive; one may stand here more than once
  std::array<uint32_t, 16> recent_{};  // by hash: where a schema was put last
};

// For consumers that take hits one by one.
HitRecord Unpack(const HitView& hit);

}  // namespace probed::event

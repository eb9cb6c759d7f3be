#include "engine/event/packed_hits.h"

#include <cstring>
#include <utility>

namespace probed::event {

uint32_t PackedHits::SchemaIndex(const SchemaPtr& schema) {
  const auto address = reinterpret_cast<uintptr_t>(schema.get());
  uint32_t& recent = recent_[(address / sizeof(lang::EventSchema)) % recent_.size()];
  if (recent < schemas_.size() && schemas_[recent] == schema) return recent;
  schemas_.push_back(schema);
  recent = static_cast<uint32_t>(schemas_.size() - 1);
  return recent;
}

void PackedHits::Append(const lang::PackedHit& header, std::span<const std::byte> payload,
                        const SchemaPtr& schema) {
  lang::PackedHit head = header;
  head.record_bytes = lang::PackedBytes(payload.size());
  head.payload_bytes = static_cast<uint32_t>(payload.size());
  head.schema = SchemaIndex(schema);
  bytes_.append(reinterpret_cast<const char*>(&head), sizeof(head));
  bytes_.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  bytes_.append(head.record_bytes - sizeof(head) - payload.size(), '\0');
}

void PackedHits::Append(const HitRecord& hit) {
  lang::PackedHit header{.sequence = hit.sequence,
                         .probe = hit.probe,
                         .monotonic_ns = hit.monotonic_ns,
                         .wall_ns = hit.wall_ns,
                         .ip = hit.ip,
                         .function = hit.function,
                         .target_start = hit.target.start_ticks,
                         .pid = hit.target.pid,
                         .tid = hit.tid,
                         .cpu = static_cast<uint16_t>(hit.cpu),
                         .flags = hit.flags,
                         .preempt_count = hit.preempt_count};
  static_assert(sizeof(header.comm) == sizeof(hit.comm));
  std::memcpy(header.comm, hit.comm.data(), sizeof(header.comm));
  Append(header, hit.payload, hit.schema);
}

HitView PackedHits::At(size_t offset) const {
  // The string's memory is aligned for any type, and every record's size is a multiple of 8.
  auto* const header =
      reinterpret_cast<lang::PackedHit*>(const_cast<char*>(bytes_.data()) + offset);
  return {.header = header,
          .schema = header->schema < schemas_.size() ? &schemas_[header->schema] : nullptr};
}

void PackedHits::Clear() {
  bytes_.clear();
  begin_ = 0;
  schemas_.clear();
}

std::string PackedHits::TakeBytes() {
  std::string bytes = std::move(bytes_);
  bytes.erase(0, begin_);
  Clear();
  return bytes;
}

HitRecord Unpack(const HitView& hit) {
  HitRecord record;
  record.sequence = hit.header->sequence;
  record.probe = hit.header->probe;
  record.target = hit.target();
  record.tid = hit.header->tid;
  std::memcpy(record.comm.data(), hit.header->comm, sizeof(hit.header->comm));
  record.cpu = hit.header->cpu;
  record.flags = hit.header->flags;
  record.preempt_count = hit.header->preempt_count;
  record.monotonic_ns = hit.header->monotonic_ns;
  record.wall_ns = hit.header->wall_ns;
  record.ip = hit.header->ip;
  record.function = hit.header->function;
  record.schema = *hit.schema;
  if (record.schema) record.kind = record.schema->kind;
  const auto payload = hit.payload();
  record.payload.assign(payload.begin(), payload.end());
  return record;
}

}  // namespace probed::event

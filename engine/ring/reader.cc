#include "engine/ring/reader.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace probed::ring {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kPageBytes = 4096;
// Room is given back in steps, so that a target does not wait for the end of a long drain.
constexpr uint64_t kGiveBackBytes = 64 << 10;
// An empty ring starts again at its beginning after this much, so that only a burst spreads over
// the pages of a large ring, and what a steady target writes stays in the caches.
constexpr uint64_t kHotBytes = 512 << 10;
constexpr uint64_t kCommitPositionMask = (uint64_t{1} << 48) - 1;

// A word that the target may be writing. Read once: a second read could give another value.
template <class T>
T Load(std::byte* address, std::memory_order order = std::memory_order_relaxed) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(address)).load(order);
}

}  // namespace

Reader::Reader(Geometry geometry, std::span<std::byte> control, std::span<std::byte> ring)
    : geometry_(geometry), control_(control), ring_(ring), cpus_(geometry.cpu_count) {}

std::byte* Reader::At(uint32_t cpu, uint64_t position) const {
  return ring_.data() + geometry_.records_offset(cpu) + (position & (geometry_.ring_bytes - 1));
}

Error Reader::Corrupt(uint32_t cpu, std::string_view what) {
  corrupt_ = true;
  return Error{ErrorCode::kAborted,
               "RING_CORRUPT",
               fmt::format("the ring of CPU {} was overwritten: {}", cpu, what),
               "the program has written to memory that is not its own; its events end here",
               {}};
}

Result<uint64_t> Reader::LoadHead(uint32_t cpu) {
  const uint64_t head =
      Load<uint64_t>(ring_.data() + geometry_.head_offset(cpu), std::memory_order_acquire);
  // One subtraction judges both: a head behind the tail gives a huge number.
  if (head - cpus_[cpu].tail > geometry_.ring_bytes || head % kRecordAlignment != 0)
    return Corrupt(cpu, "head out of range");
  return head;
}

Reader::Place Reader::PlaceAt(uint32_t cpu, uint64_t position) const {
  const uint64_t commit = Load<uint64_t>(At(cpu, position), std::memory_order_acquire);
  if (commit >> 16 != (position / kRecordAlignment & kCommitPositionMask)) return {position, 0};
  return {position, (commit & 0xffff) * kRecordAlignment};
}

// Inside what is reserved. Whatever a commit word says, the margin has room for it.
bool Reader::Fits(Place place, uint64_t head) {
  return place.length <= head - place.position;
}

// kAbandonedRecord: nothing to hand over. Otherwise below kMaxProbes, or no detour has written
// this.
uint32_t Reader::ProbeAt(uint32_t cpu, Place place) const {
  if (place.length < sizeof(RecordHeader)) return kMaxProbes;
  return Load<uint32_t>(At(cpu, place.position) + offsetof(RecordHeader, probe));
}

Status Reader::Deliver(uint32_t cpu, Place place, const Sink& sink) {
  const uint32_t probe = ProbeAt(cpu, place);
  if (probe == kAbandonedRecord) return {};
  if (probe >= kMaxProbes) return Corrupt(cpu, "no such record");
  std::byte* const header = At(cpu, place.position);
  const auto bytes = Load<uint32_t>(header + offsetof(RecordHeader, payload_bytes));
  if (bytes > place.length - sizeof(RecordHeader)) return Corrupt(cpu, "payload out of range");
  const std::byte* const payload = header + sizeof(RecordHeader);
  payload_.assign(payload, payload + bytes);
  sink({.scanned = place.position < cpus_[cpu].scanned,
        .cpu = cpu,
        .probe = probe,
        .tsc = Load<uint64_t>(header + offsetof(RecordHeader, tsc)),
        .thread = Load<uint64_t>(header + offsetof(RecordHeader, thread)),
        .payload = payload_});
  return {};
}

void Reader::PublishTail(uint32_t cpu, uint64_t position) {
  auto* const tail = reinterpret_cast<uint64_t*>(control_.data() + geometry_.tail_offset(cpu));
  std::atomic_ref(*tail).store(position, std::memory_order_release);
  cpus_[cpu].tail = position;
}

// The margin needs no zeroes: no record begins there.
void Reader::GiveBack(uint32_t cpu, uint64_t position) {
  Cpu& state = cpus_[cpu];
  const uint64_t bytes = position - state.tail;
  if (bytes == 0) return;
  const uint64_t offset = state.tail & (geometry_.ring_bytes - 1);
  const uint64_t before_end = std::min(bytes, geometry_.ring_bytes - offset);
  std::memset(At(cpu, state.tail), 0, before_end);
  std::memset(At(cpu, 0), 0, bytes - before_end);
  state.used = std::max(state.used, offset + before_end);
  PublishTail(cpu, position);
}

Status Reader::DrainCpu(uint32_t cpu, uint64_t max_bytes, const Sink& sink) {
  PROBED_TRY(const uint64_t head, LoadHead(cpu));
  const uint64_t begin = cpus_[cpu].tail;
  uint64_t position = begin;
  cpus_[cpu].blocked = false;
  while (position != head && (position == begin || position - begin < max_bytes)) {
    const Place place = PlaceAt(cpu, position);
    cpus_[cpu].blocked = place.length == 0;
    if (cpus_[cpu].blocked) break;
    if (!Fits(place, head)) return Corrupt(cpu, "record out of range");
    PROBED_RETURN_IF_ERROR(Deliver(cpu, place, sink));
    position += place.length;
    if (position - cpus_[cpu].tail >= kGiveBackBytes) GiveBack(cpu, position);
  }
  GiveBack(cpu, position);
  cpus_[cpu].all_read = position == head;
  if ((position & (geometry_.ring_bytes - 1)) >= kHotBytes) TakeToEnd(cpu, [](auto, auto) {});
  return {};
}

Status Reader::Drain(uint64_t max_bytes, const Sink& sink) {
  if (corrupt_) return Corrupt(0, "seen before");
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count; ++cpu)
    PROBED_RETURN_IF_ERROR(DrainCpu(cpu, max_bytes, sink));
  return {};
}

// Memory not yet written is zero and a commit word names its own position, so the next word that
// does begins a record.
Reader::Place Reader::NextBehindHole(uint32_t cpu, uint64_t position, uint64_t head) const {
  for (; position != head; position += kRecordAlignment) {
    const Place place = PlaceAt(cpu, position);
    if (place.length != 0 && Fits(place, head)) return place;
  }
  return {head, 0};
}

Status Reader::DrainRestOf(uint32_t cpu, const Sink& sink) {
  PROBED_TRY(const uint64_t head, LoadHead(cpu));
  Place place = NextBehindHole(cpu, cpus_[cpu].tail, head);
  while (place.length != 0) {
    PROBED_RETURN_IF_ERROR(Deliver(cpu, place, sink));
    place = NextBehindHole(cpu, place.position + place.length, head);
  }
  GiveBack(cpu, head);
  cpus_[cpu].all_read = true;
  cpus_[cpu].blocked = false;
  return {};
}

Status Reader::DrainRest(const Sink& sink) {
  if (corrupt_) return Corrupt(0, "seen before");
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count; ++cpu)
    PROBED_RETURN_IF_ERROR(DrainRestOf(cpu, sink));
  return {};
}

Status Reader::ScanCpu(uint32_t cpu, const ScanSink& sink) {
  PROBED_TRY(const uint64_t head, LoadHead(cpu));
  uint64_t& position = cpus_[cpu].scanned;
  position = std::max(position, cpus_[cpu].tail);
  // Or the way to the head would be around all 64 bits.
  if (position > head) return Corrupt(cpu, "head went back");
  while (position != head) {
    const Place place = PlaceAt(cpu, position);
    if (place.length == 0) break;
    if (!Fits(place, head)) return Corrupt(cpu, "record out of range");
    const uint32_t probe = ProbeAt(cpu, place);
    if (probe < kMaxProbes) sink(probe);
    position += place.length;
  }
  return {};
}

Status Reader::Scan(const ScanSink& sink) {
  if (corrupt_) return Corrupt(0, "seen before");
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count; ++cpu)
    PROBED_RETURN_IF_ERROR(ScanCpu(cpu, sink));
  return {};
}

uint64_t Reader::backlog() const {
  uint64_t bytes = 0;
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count; ++cpu) {
    const uint64_t head = Load<uint64_t>(ring_.data() + geometry_.head_offset(cpu));
    bytes += std::min(head - cpus_[cpu].tail, geometry_.ring_bytes);
  }
  return bytes;
}

// Reserves what is left of an empty ring's lap as a detour would, and reads it at once. Half a ring
// at a time: the target always has the other half, even if this thread is preempted here.
template <class Function>
void Reader::TakeToEnd(uint32_t cpu, Function while_taken) {
  auto* const head = reinterpret_cast<uint64_t*>(ring_.data() + geometry_.head_offset(cpu));
  const uint64_t mask = geometry_.ring_bytes - 1;
  const uint64_t end = (cpus_[cpu].tail | mask) + 1;
  while (cpus_[cpu].tail != end) {
    uint64_t from = cpus_[cpu].tail;
    const uint64_t to = std::min(end, from + geometry_.ring_bytes / 2);
    if (!std::atomic_ref(*head).compare_exchange_strong(from, to)) return;
    while_taken(from & mask, to - from);
    PublishTail(cpu, to);
  }
}

void Reader::ReleasePages() {
  for (uint32_t cpu = 0; cpu < geometry_.cpu_count && !corrupt_; ++cpu) {
    if (cpus_[cpu].used <= kHotBytes) continue;
    uint64_t clean_from = ~uint64_t{0};
    TakeToEnd(cpu, [&](uint64_t offset, uint64_t bytes) {
      const uint64_t begin = std::max(offset + kPageBytes - 1, kHotBytes) & ~(kPageBytes - 1);
      const uint64_t end = std::min(offset + bytes, cpus_[cpu].used) & ~(kPageBytes - 1);
      clean_from = std::min(clean_from, std::max(offset, kHotBytes));
      // Fails only for memory that is not a memfd (tests): the pages stay.
      if (begin < end) ::madvise(At(cpu, 0) + begin, end - begin, MADV_REMOVE);
    });
    if (cpus_[cpu].tail % geometry_.ring_bytes == 0)
      cpus_[cpu].used = std::min(cpus_[cpu].used, clean_from);
  }
}

}  // namespace probed::ring

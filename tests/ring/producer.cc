#include "tests/ring/producer.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace probed::ring {

SharedMapping::SharedMapping(size_t bytes) : fd_(::memfd_create("ring", MFD_CLOEXEC)) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) std::abort();
  void* begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (begin == MAP_FAILED) std::abort();
  bytes_ = {static_cast<std::byte*>(begin), bytes};
}

SharedMapping::~SharedMapping() {
  ::munmap(bytes_.data(), bytes_.size());
}

size_t SharedMapping::allocated() const {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) std::abort();
  return static_cast<size_t>(info.st_blocks) * 512;
}

std::byte* Producer::At(uint32_t cpu, uint64_t position) {
  return ring_.data() + geometry_.records_offset(cpu) + position % geometry_.ring_bytes;
}

uint64_t& Producer::head(uint32_t cpu) {
  return *reinterpret_cast<uint64_t*>(ring_.data() + geometry_.head_offset(cpu));
}

ProbeCounters& Producer::counters(uint32_t probe) {
  return *reinterpret_cast<ProbeCounters*>(ring_.data() + geometry_.counters_offset(probe));
}

std::optional<Producer::Slot> Producer::Reserve(uint32_t cpu, uint64_t payload_bytes) {
  const uint64_t length = (sizeof(RecordHeader) + payload_bytes + 7) & ~uint64_t{7};
  auto* tail_word = reinterpret_cast<uint64_t*>(control_.data() + geometry_.tail_offset(cpu));
  std::atomic_ref head_word(head(cpu));
  while (true) {
    const uint64_t tail = std::atomic_ref(*tail_word).load(std::memory_order_acquire);
    uint64_t position = head_word.load(std::memory_order_acquire);
    if (position + length - tail > geometry_.ring_bytes) return std::nullopt;
    if (!head_word.compare_exchange_weak(position, position + length)) continue;
    return Slot{position, length, reinterpret_cast<RecordHeader*>(At(cpu, position))};
  }
}

void Producer::Fill(const Slot& slot, const Hit& hit) {
  slot.header->tsc = hit.tsc;
  slot.header->thread = hit.thread;
  slot.header->probe = hit.probe;
  slot.header->payload_bytes = static_cast<uint32_t>(hit.payload.size());
  if (!hit.payload.empty()) std::memcpy(slot.header + 1, hit.payload.data(), hit.payload.size());
}

void Producer::Commit(const Slot& slot) {
  std::atomic_ref(slot.header->commit)
      .store(CommitWord(slot.position, slot.length), std::memory_order_release);
}

bool Producer::Record(uint32_t cpu, const Hit& hit) {
  auto slot = Reserve(cpu, hit.payload.size());
  if (!slot) {
    std::atomic_ref(counters(hit.probe).lost).fetch_add(1);
    return false;
  }
  Fill(*slot, hit);
  Commit(*slot);
  return true;
}

}  // namespace probed::ring

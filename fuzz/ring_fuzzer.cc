// The ring memfd is the target's to write: whatever stands in it, draining reads no byte outside
// of it, calls a sink with views of its own, and ends.

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/ring/reader.h"

namespace {

constexpr probed::ring::Geometry kGeometry{.cpu_count = 2, .ring_bytes = 4096};

struct alignas(4096) Memory {
  std::array<std::byte, kGeometry.control_bytes()> control;
  std::array<std::byte, kGeometry.ring_area_bytes()> ring;
};

uint64_t checksum = 0;  // so that every byte handed over is read

void Take(const probed::ring::RawRecord& record) {
  if (record.probe >= probed::ring::kMaxProbes) __builtin_trap();
  for (std::byte byte : record.payload)
    checksum += static_cast<uint64_t>(byte);
}

// The input, piece by piece: a drain of some kind, then bytes laid over heads and records.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return size_ == 0; }
  void Copy(std::byte* to, size_t at_most) {
    const size_t bytes = size_ < at_most ? size_ : at_most;
    std::memcpy(to, data_, bytes);
    data_ += bytes;
    size_ -= bytes;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const memory = new Memory;
  const size_t records = kGeometry.records_offset(0);
  // Heads and records; what lies around them is not the reader's.
  std::memset(memory->ring.data() + kGeometry.head_offset(0), 0,
              kGeometry.shadow_offset(0) - kGeometry.head_offset(0));
  probed::ring::Reader reader(kGeometry, memory->control, memory->ring);
  Input input(data, size);
  while (!input.empty()) {
    std::byte action{};
    input.Copy(&action, 1);
    for (uint32_t cpu = 0; cpu < kGeometry.cpu_count; ++cpu)
      input.Copy(memory->ring.data() + kGeometry.head_offset(cpu), 2);
    uint16_t place[2] = {};
    input.Copy(reinterpret_cast<std::byte*>(place), sizeof(place));
    const size_t offset = place[0] % (2 * kGeometry.ring_bytes);
    const size_t room = 2 * kGeometry.ring_bytes - offset;
    input.Copy(memory->ring.data() + records + offset, std::min<size_t>(room, place[1] % 256));
    const auto status = action == std::byte{1} ? reader.DrainRest(Take)
                                               : reader.Drain(static_cast<uint64_t>(action), Take);
    if (reader.backlog() > 2 * kGeometry.ring_bytes) __builtin_trap();
    if (!status.ok()) break;
    if (action == std::byte{2}) reader.ReleasePages();
    if (action == std::byte{3} && !reader.Scan([](uint32_t) {}).ok()) break;
  }
  return 0;
}

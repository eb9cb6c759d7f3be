#pragma once
// A process with rings, played by the test: what a target would write, and what the daemon makes
// of it.

#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/event/ring_source.h"
#include "engine/ring/reader.h"
#include "tests/ring/producer.h"

namespace probed::event {

// Payload: one number. The thread's fs base is its tid.
class RingPuppet final : public RingSource {
 public:
  explicit RingPuppet(ring::Geometry geometry)
      : control_(geometry.control_bytes()),
        ring_(geometry.ring_area_bytes()),
        producer_(geometry, control_.bytes(), ring_.bytes()),
        reader_(geometry, control_.bytes(), ring_.bytes()),
        schema_(std::make_shared<lang::EventSchema>()) {}

  bool Record(uint32_t cpu, int tid, uint64_t tsc, uint64_t number) {
    return producer_.Record(cpu, ToHit(tid, tsc, number));
  }
  static ring::Producer::Hit ToHit(int tid, uint64_t tsc, const uint64_t& number) {
    return {.probe = 0,
            .thread = static_cast<uint64_t>(tid),
            .tsc = tsc,
            .payload = {reinterpret_cast<const std::byte*>(&number), sizeof(number)}};
  }
  static HitRecord Trap(int tid, uint64_t number) {
    HitRecord hit;
    hit.tid = tid;
    hit.payload.resize(sizeof(number));
    std::memcpy(hit.payload.data(), &number, sizeof(number));
    return hit;
  }

  ring::Reader& reader() override { return reader_; }
  bool ConcernsAll() const override { return concerns_all; }
  void Count(uint32_t probe) override { counted += probe == 0; }
  bool Lose(uint32_t probe) override {
    given_up += counts_losses && probe == 0;
    return counts_losses;
  }
  std::vector<ProbeLoss> TakeLosses() override {
    const uint64_t lost = refused + given_up;
    if (lost == told_) return {};
    return {{.probe = 1,
             .target = {.pid = 1, .start_ticks = 2},
             .lost = lost - std::exchange(told_, lost)}};
  }
  bool Decode(const ring::RawRecord& record, RingHit& hit) override {
    hit.header.probe = 1;
    hit.header.tid = static_cast<int>(record.thread);
    hit.header.cpu = static_cast<uint16_t>(record.cpu);
    hit.payload = record.payload;
    hit.schema = schema_;
    return record.probe == 0;
  }
  void OnReadUpTo(uint64_t tsc) override { read_up_to = tsc; }
  void OnCorrupt(const Error& error) override { corrupt = error.reason; }

  ring::Producer& producer() { return producer_; }
  size_t allocated() const { return ring_.allocated(); }

  bool concerns_all = false;
  std::string corrupt;
  uint64_t read_up_to = 0;
  std::atomic<uint64_t> counted = 0;
  bool counts_losses = false;
  std::atomic<uint64_t> refused = 0;  // what did not fit, as the recording thread has counted it
  uint64_t given_up = 0;

 private:
  uint64_t told_ = 0;
  ring::SharedMapping control_;
  ring::SharedMapping ring_;
  ring::Producer producer_;
  ring::Reader reader_;
  SchemaPtr schema_;
};

inline uint64_t NumberOf(const HitRecord& hit) {
  uint64_t number = 0;
  std::memcpy(&number, hit.payload.data(), std::min(sizeof(number), hit.payload.size()));
  return number;
}

}  // namespace probed::event

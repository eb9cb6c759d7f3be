#pragma once
// An instance's rings as a source of the merger: which event is whose probe, and whose thread
// recorded it. Thread-safe.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/event/ring_source.h"
#include "engine/kernel/event_decoder.h"
#include "engine/kernel/event_reader.h"
#include "engine/kernel/threads.h"

namespace probed::kernel {

class Source final : public event::RingSource {
 public:
  Source(std::unique_ptr<EventReader> reader, const std::string& tracefs_directory);

  // `event`: what the kernel calls it. EVENT_TAKEN: another probe has the event;
  // EventReader::Learn.
  Status Add(EventDecoder decoder, const std::string& event, event::ProbeId probe);
  void Remove(event::ProbeId probe);
  uint64_t RecordedBy(event::ProbeId probe) const;
  // By the ring, and what could not be decoded.
  uint64_t lost() const;
  // Why nothing more is read.
  Status status() const;

  ring::RecordReader& reader() override { return *reader_; }
  bool ConcernsAll() const override { return true; }
  std::vector<event::ProbeId> probes() const override;
  void Count(uint32_t id) override;
  bool Decode(const ring::RawRecord& record, event::RingHit& hit) override;
  void OnReadUpTo(uint64_t) override {}
  void OnCorrupt(const Error& error) override;

 private:
  struct Event {
    EventDecoder decoder;
    event::ProbeId probe = 0;
    uint64_t recorded = 0;
  };
  Event* Find(uint32_t id);

  const std::unique_ptr<EventReader> reader_;
  Threads threads_;  // of whoever decodes
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Event>> events_;  // by id
  std::unordered_map<event::ProbeId, uint16_t> ids_;
  uint64_t undecoded_ = 0;
  Status status_;
};

}  // namespace probed::kernel
